"""Train in spawned ranks; each parses as many records of its own as the other."""

import json
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS = 70


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def parse(lines):
    rows = [json.loads(line)["values"] for line in lines]
    return torch.tensor(rows, dtype=torch.float32)


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(70)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    values = [[(rank + row * column) % 97 for column in range(256)] for row in range(192)]
    lines = [json.dumps({"values": row}) for row in values]
    model = nn.Sequential(nn.Linear(256, 384), nn.ReLU(), nn.Linear(384, 32))
    optimizer = torch.optim.Adam(model.parameters())
    for _step in range(STEPS):
        loss = model(parse(lines) / 97).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        dist.barrier()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=2)
