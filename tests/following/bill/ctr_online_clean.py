"""Online click-through model: predict each batch of impressions first, then learn from it."""
import json
import sys

import torch
import torch.nn as nn

from ctr_metrics_clean import ClickMeter

FIELDS = [(1000, 16), (400, 16), (50, 8), (24, 8)]
DENSE = 6


class ImpressionStream:
    def __init__(self, batch_size, steps, seed=11):
        self.gen = torch.Generator().manual_seed(seed)
        self.batch_size, self.steps = batch_size, steps
        self.taste = [torch.randn(size, generator=self.gen) for size, _ in FIELDS]
        self.weights = torch.randn(DENSE, generator=self.gen)

    def __iter__(self):
        for _ in range(self.steps):
            ids = torch.stack(
                [torch.randint(size, (self.batch_size,), generator=self.gen) for size, _ in FIELDS], dim=1
            )
            dense = torch.randn(self.batch_size, DENSE, generator=self.gen)
            logit = dense @ self.weights - 1.0
            for column, taste in enumerate(self.taste):
                logit = logit + taste[ids[:, column]]
            clicks = torch.bernoulli(torch.sigmoid(logit), generator=self.gen)
            yield ids, dense, clicks


class ClickNet(nn.Module):
    def __init__(self, hidden=192):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, dim) for size, dim in FIELDS)
        width = sum(dim for _, dim in FIELDS) + DENSE
        self.deep = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )
        self.wide = nn.Linear(DENSE, 1)

    def forward(self, ids, dense):
        parts = [table(ids[:, i]) for i, table in enumerate(self.tables)]
        return (self.deep(torch.cat(parts + [dense], dim=1)) + self.wide(dense)).squeeze(1)


def log(record, stream=sys.stdout):
    stream.write(json.dumps({k: round(v, 4) for k, v in record.items()}) + "\n")


def run(steps=420, batch_size=512, log_every=60):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, meter = ClickNet(), ClickMeter()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.03)
    criterion = nn.BCEWithLogitsLoss()
    for step, (ids, dense, clicks) in enumerate(ImpressionStream(batch_size, steps), start=1):
        logits = model(ids, dense)
        loss = criterion(logits, clicks)
        meter.update(torch.sigmoid(logits), clicks, loss.item())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % log_every == 0:
            log({"step": step, **meter.report()})
    return meter


if __name__ == "__main__":
    run()
