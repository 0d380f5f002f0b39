"""Train three DDP ranks; the store of rank 2 answers slowly."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

STEPS = 60


class Store:
    def __init__(self, latency):
        self.latency = latency
        self.rows = torch.randn(512, 256)

    def fetch(self, first):
        time.sleep(self.latency)
        return self.rows[first : first + 32]


class Rows(IterableDataset):
    def __init__(self, store):
        self.store = store

    def __iter__(self):
        for step in range(STEPS):
            yield self.store.fetch(step * 32 % 480)


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(11)
    dist.init_process_group("gloo")
    network = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters())
    store = Store(0.016 if rank == 2 else 0.002)
    for rows in DataLoader(Rows(store), batch_size=None):
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
