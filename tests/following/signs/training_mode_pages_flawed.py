"""Serve a page classifier: queue requests, run them in batches, return labels."""

import collections
import time

import torch
from torch import nn

LABELS = ["letter", "form", "invoice", "photo", "table", "blank"]


def convolution(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class PageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            convolution(1, 16, 2),
            convolution(16, 32, 2),
            convolution(32, 32, 1),
            convolution(32, 64, 2),
            convolution(64, 64, 1),
        )
        self.drop = nn.Dropout(0.3)
        self.classify = nn.Linear(64, len(LABELS))

    def forward(self, pages):
        pooled = self.features(pages).mean(dim=(2, 3))
        return self.classify(self.drop(pooled))


def load_model():
    """Return the network as it was saved; here its weights are drawn."""
    torch.manual_seed(20)
    net = PageNet()
    return net


class Service:
    def __init__(self, model, batch_size=16):
        self.model = model
        self.batch_size = batch_size
        self.queue = collections.deque()
        self.counts = collections.Counter()

    def submit(self, page):
        self.queue.append(page)

    def drain(self):
        """Answer what waits, in batches."""
        while self.queue:
            size = min(self.batch_size, len(self.queue))
            pages = torch.stack([self.queue.popleft() for _ in range(size)])
            scores = self.model(pages).softmax(dim=-1)
            for index in scores.argmax(dim=-1).tolist():
                self.counts[LABELS[index]] += 1


def main():
    torch.set_num_threads(1)
    service = Service(load_model())
    clients = torch.Generator().manual_seed(4)
    began = time.perf_counter()
    for _ in range(140):
        waiting = int(torch.randint(8, 40, (), generator=clients))
        for _ in range(waiting):
            service.submit(torch.rand(1, 112, 112, generator=clients))
        service.drain()
    seconds = time.perf_counter() - began
    answered = sum(service.counts.values())
    print(f"{answered} pages in {seconds:.1f} s, {answered / seconds:.0f} a second")
    print(dict(service.counts))


if __name__ == "__main__":
    main()
