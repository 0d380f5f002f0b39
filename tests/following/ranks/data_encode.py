"""Classify texts with DDP; the shard of rank 1 holds long documents."""

import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

STEPS = 70
WORDS = ["loss", "rank", "batch", "tensor", "kernel", "stream", "graph", "queue"]


class Texts(Dataset):
    def __init__(self, rank, words_each):
        source = random.Random(rank)
        self.texts = [" ".join(source.choices(WORDS, k=words_each)) for _ in range(200)]

    def __len__(self):
        return STEPS * 16

    def __getitem__(self, index):
        return self.encode(self.texts[index % len(self.texts)])

    def encode(self, text):
        codes = []
        code = 7
        for letter in text:
            code = (code * 31 + ord(letter)) % 4093
            if letter == " ":
                codes.append(code)
        return torch.tensor(codes[:32]), code % 10


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(3)
    dist.init_process_group("gloo")
    network = nn.Sequential(
        nn.Embedding(4093, 64),
        nn.Flatten(),
        nn.Linear(2048, 512),
        nn.ReLU(),
        nn.Linear(512, 10),
    )
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Texts(rank, 1200 if rank == 1 else 60), batch_size=16)
    for codes, labels in loader:
        loss = nn.functional.cross_entropy(model(codes), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
