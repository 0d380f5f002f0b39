"""Train by broadcast and all-reduce on three ranks; rank 1 audits its samples."""

import collections
import logging
import os
import re

import torch
import torch.distributed as dist
from torch import nn

STEPS = 70
logger = logging.getLogger("audit")


def audit(rows, step):
    counts = collections.Counter()
    for number, row in enumerate(rows.tolist()):
        text = " ".join(f"{value:.2f}" for value in row[:24])
        counts.update(re.findall(r"-?\d\.\d", text))
        logger.info("step %d row %d: %s", step, number, text[:40])
    return counts.most_common(5)


def main():
    rank = int(os.environ["RANK"])
    logging.basicConfig(level=logging.INFO, filename=os.devnull)
    torch.set_num_threads(1)
    torch.manual_seed(20 + rank)
    dist.init_process_group("gloo")
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        rows = torch.randn(256, 128)
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        if rank == 1:
            audit(rows, step)
        gradient = torch.cat([one.grad.flatten() for one in model.parameters()])
        dist.all_reduce(gradient, op=dist.ReduceOp.SUM)
        first = 0
        for parameter in model.parameters():
            last = first + parameter.numel()
            parameter.grad = gradient[first:last].view_as(parameter) / 3
            first = last
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
