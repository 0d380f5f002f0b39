"""Score blocks and scatter their sums; rank 1 runs more layers than rank 0."""

import os

import torch
import torch.distributed as dist
from torch import nn

STEPS = 140
DEPTH = [4, 9]


def build(depth):
    layers = []
    for _ in range(depth):
        layers.append(nn.Linear(256, 256))
        layers.append(nn.Tanh())
    return nn.Sequential(*layers)


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(8)
    dist.init_process_group("gloo")
    tower = build(DEPTH[rank])
    block = torch.randn(768, 256)
    for _step in range(STEPS):
        with torch.no_grad():
            features = tower(block)
        part = torch.empty(384, 256)
        dist.reduce_scatter_tensor(part, features.contiguous())
        pieces = [torch.empty_like(part) for _ in range(2)]
        dist.all_gather(pieces, part)
        block = torch.cat(pieces).tanh()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
