"""Train with DDP; every rank draws its own sequence length for each step."""

import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 60


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(300, 64)
        self.cell = nn.GRU(64, 96, batch_first=True)
        self.head = nn.Linear(96, 300)

    def forward(self, tokens):
        hidden, _last = self.cell(self.embed(tokens))
        return self.head(hidden)


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    lengths = random.Random(100 + rank)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Reader())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _step in range(STEPS):
        tokens = torch.randint(0, 300, (16, lengths.randint(8, 48)))
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
