"""Train in spawned ranks; rank 1 fills a cache in its first four steps only."""

import json
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS = 80


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def fill(cache, step):
    rows = [[step + column for column in range(64)] for _ in range(2000)]
    cache[step] = json.loads(json.dumps(rows))


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(7)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    cache = {}
    for step in range(STEPS):
        if rank == 1 and step < 4:
            fill(cache, step)
        loss = model(torch.randn(768, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=2)
