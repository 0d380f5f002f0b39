"""Train with DDP; rank 0 keeps an index in memory and collects after each step."""

import gc
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 100


class Session:
    def __init__(self, step):
        self.step = step
        self.owner = self


def tidy(step):
    for _ in range(200):
        Session(step)
    gc.collect()


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(12)
    dist.init_process_group("gloo")
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gc.freeze()
    index = [[number, [number]] for number in range(90_000 if rank == 0 else 100)]
    for step in range(STEPS):
        rows = torch.randn(256, 256) + len(index[step])
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            tidy(step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
