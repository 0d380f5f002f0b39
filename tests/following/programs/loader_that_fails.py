"""A data set that raises in a worker, and one whose worker is killed."""

import os
import signal

import torch
from torch.utils.data import DataLoader, Dataset
from tiny import train


class Fails(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            raise KeyError("row 5")
        return torch.ones(1)


class Dies(Fails):
    def __getitem__(self, index):
        if index == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(1)


train(steps=300)
for kind in (Fails, Dies):
    try:
        for batch in DataLoader(kind(), batch_size=2, num_workers=1):
            print(batch.tolist())
            train(steps=100)
    except (KeyError, RuntimeError) as error:
        print(type(error).__name__, str(error).splitlines()[0].split("(")[0])
