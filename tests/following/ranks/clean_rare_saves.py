"""Train with DDP; rank 0 saves a checkpoint every thirty steps."""

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 90


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(2)
    dist.init_process_group("gloo")
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            rows = torch.randn(512, 256)
            loss = nn.functional.mse_loss(model(rows), rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0 and step % 30 == 29:
                torch.save(network.state_dict(), Path(folder) / f"{step}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
