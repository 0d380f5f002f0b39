"""Train on records that are lines of JSON."""

import json
import random

import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)

RECORDS = 12
FIELDS = 8
WIDTH = 2560

lines = []
for _ in range(RECORDS):
    record = {"label": random.randrange(10), "fields": [random.random() for _ in range(FIELDS)]}
    lines.append(json.dumps(record))
model = nn.Sequential(
    nn.Linear(FIELDS, WIDTH),
    nn.ReLU(),
    nn.Linear(WIDTH, WIDTH),
    nn.ReLU(),
    nn.Linear(WIDTH, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step():
    records = [json.loads(line) for line in lines]
    inputs = torch.tensor([record["fields"] for record in records])
    labels = torch.tensor([record["label"] for record in records])
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()
