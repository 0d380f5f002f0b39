"""Train with DDP; rank 0 writes every weight's statistics as JSON each step."""

import json
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 70


def write_metrics(model, step, loss, path):
    report = {"step": step, "loss": loss}
    for name, parameter in model.named_parameters():
        report[name] = parameter.detach().flatten()[:4000].tolist()
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(report) + "\n")


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(4)
    dist.init_process_group("gloo")
    network = nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 16)
    )
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            rows = torch.randn(128, 256)
            loss = model(rows).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0:
                write_metrics(model, step, loss.item(), Path(folder) / "metrics.jsonl")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
