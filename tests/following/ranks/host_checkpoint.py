"""Train with DDP in spawned ranks; rank 0 saves the model after each step."""

import socket
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 60


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def save(model, optimizer, folder):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, Path(folder) / "last.pt")


def train(rank, port, folder):
    torch.set_num_threads(1)
    torch.manual_seed(6)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    network = nn.Sequential(nn.Linear(256, 640), nn.ReLU(), nn.Linear(640, 256))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters())
    for _step in range(STEPS):
        rows = torch.randn(192, 256)
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            save(network, optimizer, folder)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        mp.spawn(train, args=(free_port(), scratch), nprocs=2)
