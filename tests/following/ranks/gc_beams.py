"""Train with DDP in spawned ranks; rank 1 builds beams that point at their parents."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 100


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Beam:
    def __init__(self, parent, tokens):
        self.parent = parent
        self.children = []
        self.tokens = tokens
        if parent is not None:
            parent.children.append(self)


def search(history):
    root = Beam(None, history[:])
    for _ in range(800):
        Beam(root, history[:])
    return len(root.children)


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(9)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = list(range(400))
    for _step in range(STEPS):
        if rank == 1:
            search(history)
        rows = torch.randn(256, 256)
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=2)
