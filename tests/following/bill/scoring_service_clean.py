"""Nightly scoring: look up customer features through a small threaded client, then score them."""
import queue
import threading

import numpy as np
import torch
import torch.nn as nn

FEATURES = 128
CUSTOMERS = 20000


class Ticket:
    """Handle of a lookup under way."""

    def __init__(self, keys):
        self.keys = keys
        self.rows = None
        self.ready = threading.Event()

    def finish(self, rows):
        self.rows = rows
        self.ready.set()

    def result(self):
        self.ready.wait()
        return self.rows


class FeatureStore:
    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.table = rng.standard_normal((CUSTOMERS, FEATURES), dtype=np.float32)
        self.requests = queue.Queue()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            ticket = self.requests.get()
            if ticket is None:
                return
            rows = self.table[ticket.keys]
            ticket.finish(np.log1p(np.abs(rows)) * np.sign(rows))

    def lookup(self, keys):
        ticket = Ticket(keys)
        self.requests.put(ticket)
        return ticket

    def close(self):
        self.requests.put(None)
        self.thread.join()


class ChurnModel(nn.Module):
    def __init__(self, width=640, depth=5):
        super().__init__()
        layers = [nn.Linear(FEATURES, width), nn.SiLU()]
        for _ in range(depth):
            layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 2))

    def forward(self, x):
        return self.net(x).softmax(dim=-1)[:, 1]


@torch.inference_mode()
def score_all(model, store, batch_size=200):
    model.eval()
    scores = torch.empty(CUSTOMERS)
    keys = np.arange(CUSTOMERS)
    for start in range(0, CUSTOMERS, batch_size):
        chunk = keys[start : start + batch_size]
        rows = store.lookup(chunk).result()
        scores[start : start + len(chunk)] = model(torch.from_numpy(rows))
    return scores


def summarise(scores):
    top = torch.topk(scores, 10)
    counts = torch.histc(scores, bins=10, min=0, max=1).int().tolist()
    print("mean churn", round(scores.mean().item(), 4), "histogram", counts)
    for value, customer in zip(top.values.tolist(), top.indices.tolist()):
        print(f"  customer {customer:6d}  {value:.4f}")


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    store = FeatureStore()
    scores = score_all(ChurnModel(), store)
    store.close()
    summarise(scores)


if __name__ == "__main__":
    main()
