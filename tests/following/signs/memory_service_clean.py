"""Answer requests for document vectors; the same document is not computed twice."""

import collections
import time

import torch
from torch import nn


class DocumentEncoder(nn.Module):
    def __init__(self, vocabulary=3000, width=192):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, ids):
        x = self.embed(ids)
        return x + self.mix(x)


class VectorService:
    def __init__(self, encoder, limit=100):
        self.encoder = encoder.eval()
        self.limit = limit
        self.cache = collections.OrderedDict()
        self.hits = 0
        self.asked = 0

    def vectors(self, key, ids):
        """Return one vector for each word of the document."""
        self.asked += 1
        if key in self.cache:
            self.hits += 1
            self.cache.move_to_end(key)
            return self.cache[key]
        with torch.inference_mode():
            result = self.encoder(ids)
        self.cache[key] = result
        if len(self.cache) > self.limit:
            self.cache.popitem(last=False)
        return result


class Clients:
    """Ask mostly for new documents, sometimes for a recent one."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.newest = 0

    def next(self):
        if torch.rand((), generator=self.generator) < 0.7:
            self.newest += 1
            number = self.newest
        else:
            back = int(torch.randint(0, 40, (), generator=self.generator))
            number = max(1, self.newest - back)
        content = torch.Generator().manual_seed(number)
        return f"doc-{number}", torch.randint(3000, (384,), generator=content)


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    service = VectorService(DocumentEncoder())
    clients = Clients(seed=5)
    began = time.perf_counter()
    checksum = 0.0
    for number in range(1, 2401):
        key, ids = clients.next()
        checksum += service.vectors(key, ids)[0, 0].item()
        if number % 600 == 0:
            rate = number / (time.perf_counter() - began)
            print(f"{number} requests, {rate:.0f} a second, {service.hits} from the cache")
    print(f"checksum {checksum:.3f}")


if __name__ == "__main__":
    main()
