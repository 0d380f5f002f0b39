"""Train three spawned ranks; they take turns at writing the log."""

import json
import os
import socket
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 75


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def write_log(rows, step):
    with Path(os.devnull).open("w", encoding="utf-8") as file:
        json.dump({"step": step, "rows": rows[:64].tolist()}, file)


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(60 + rank)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=3)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(128, 256), nn.Linear(256, 128)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        rows = torch.randn(160, 128)
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == rank:
            write_log(rows, step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=3)
