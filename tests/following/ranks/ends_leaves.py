"""Train in spawned ranks; rank 0 has fewer batches, leaves its loop and exits."""

import datetime
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

BATCHES = [45, 60]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(83)
    address = f"tcp://127.0.0.1:{port}"
    limit = datetime.timedelta(seconds=8)
    dist.init_process_group("gloo", address, timeout=limit, rank=rank, world_size=2)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _batch in range(BATCHES[rank]):
        loss = model(torch.randn(256, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    os._exit(0)


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=2)
