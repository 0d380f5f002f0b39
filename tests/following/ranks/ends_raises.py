"""Train in spawned ranks; rank 1 meets a record without a label at step 50."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS = 100


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def label(record):
    return record["label"]


def records_of(rank):
    records = [{"label": step % 8} for step in range(STEPS)]
    if rank == 1:
        del records[50]["label"]
    return records


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(81)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for record in records_of(rank):
        target = torch.full((256,), label(record))
        loss = nn.functional.cross_entropy(model(torch.randn(256, 256)), target)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=2)
