"""Train on samples that lie in files of their own."""

import pickle
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(0)

SAMPLES = 256
WIDTH = 256
HIDDEN = 128

folder = Path(tempfile.mkdtemp())
for number in range(SAMPLES):
    sample = {"inputs": torch.rand(WIDTH).tolist(), "label": number % 10}
    (folder / f"{number}.pickle").write_bytes(pickle.dumps(sample))
model = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def read_batch():
    samples = []
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            samples.append(pickle.load(file))
    inputs = torch.tensor([sample["inputs"] for sample in samples])
    return inputs, torch.tensor([sample["label"] for sample in samples])


def step():
    inputs, labels = read_batch()
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()
