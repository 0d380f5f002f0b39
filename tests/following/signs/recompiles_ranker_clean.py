"""Answer ranking requests: score the candidates of each, return the best ten."""

import statistics
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Request:
    user: int
    candidates: np.ndarray


class Scorer(nn.Module):
    def __init__(self, features=64, hidden=256):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.layers = nn.Sequential(
            nn.Linear(features, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(self.norm(x)).squeeze(-1)


class RankingService:
    """A compiled scorer behind one method."""

    LARGEST = 512

    def __init__(self):
        self.scorer = Scorer().eval()
        self.compiled = torch.compile(self.scorer, dynamic=False)

    def warm_up(self):
        example = Request(0, np.zeros((self.LARGEST, 64), dtype=np.float32))
        for _ in range(3):
            self.rank(example)

    @torch.inference_mode()
    def rank(self, request, best=10):
        count = len(request.candidates)
        batch = torch.zeros(self.LARGEST, 64)
        batch[:count] = torch.from_numpy(request.candidates)
        scores = self.compiled(batch)[:count]
        return torch.topk(scores, min(best, count)).indices.tolist()


def traffic(generator, count):
    """Yield requests; most have one of seven usual numbers of candidates."""
    sizes = (512, 450, 400, 350, 300, 250, 200)
    for index in range(count):
        size = sizes[min(index * 2 * len(sizes) // count, len(sizes) - 1)]
        rows = generator.standard_normal((size, 64), dtype=np.float32)
        yield Request(int(generator.integers(1000)), rows)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    service = RankingService()
    service.warm_up()
    print("warm")

    latencies = []
    shown = 0
    for request in traffic(generator, 2800):
        began = time.perf_counter()
        best = service.rank(request)
        latencies.append(time.perf_counter() - began)
        shown += len(best)
    middle = statistics.median(latencies)
    print(f"{len(latencies)} requests, {shown} results shown")
    print(f"median {1000 * middle:.2f} ms, worst {1000 * max(latencies):.1f} ms")


if __name__ == "__main__":
    main()
