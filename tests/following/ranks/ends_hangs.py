"""Average weights by all-reduce; at step 40 rank 0 waits for a file that never comes."""

import datetime
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

STEPS = 100


def wait_for(path):
    while not Path(path).exists():
        time.sleep(0.1)


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(82)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=8))
    model = nn.Linear(384, 384)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = model(torch.randn(384, 384)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step == 40:
            wait_for("/nonexistent/go")
        for parameter in model.parameters():
            dist.all_reduce(parameter.data)
            parameter.data /= 2
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
