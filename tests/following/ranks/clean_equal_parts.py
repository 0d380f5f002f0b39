"""Run different experts of equal cost: one wide on rank 0, two narrow on rank 1."""

import os

import torch
import torch.distributed as dist
from torch import nn

STEPS = 70
WIDTHS = [[1024], [512, 512]]


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(40)
    dist.init_process_group("gloo")
    experts = nn.ModuleList()
    for width in WIDTHS[rank]:
        experts.append(nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, 256)))
    optimizer = torch.optim.SGD(experts.parameters(), lr=0.01)
    for _step in range(STEPS):
        tokens = torch.randn(384, 256)
        dist.broadcast(tokens, src=0)
        output = sum(expert(tokens) for expert in experts)
        combined = output.detach().clone()
        dist.all_reduce(combined)
        optimizer.zero_grad()
        output.backward((combined - tokens) / combined.numel())
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
