"""Accumulate gradients over four batches with DDP and without its reductions."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 30


def backward(model, rows):
    loss = nn.functional.mse_loss(model(rows), rows) / 4
    loss.backward()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(50 + int(os.environ["RANK"]))
    dist.init_process_group("gloo")
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters())
    for _step in range(STEPS):
        optimizer.zero_grad()
        with model.no_sync():
            for _ in range(3):
                backward(model, torch.randn(160, 256))
        backward(model, torch.randn(160, 256))
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
