"""Train with DDP; the system kills rank 1 at step 60, before its forward pass."""

import os
import signal

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 120


def check_memory(rank, step):
    if rank == 1 and step == 60:
        os.kill(os.getpid(), signal.SIGKILL)


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(80)
    dist.init_process_group("gloo")
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        rows = torch.randn(256, 256)
        check_memory(rank, step)
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
