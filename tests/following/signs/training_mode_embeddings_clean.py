#!/usr/bin/env python3
"""Compute embeddings of a text collection and search in them."""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn


class Encoder(nn.Module):
    """Mean-pooled transformer."""

    def __init__(self, vocabulary=5000, width=128, layers=3, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(1, 128, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[:, : ids.shape[1]]
        return nn.functional.normalize(self.body(x).mean(dim=1), dim=-1)


def embed(model, texts, batch_size):
    model.eval()
    chunks = []
    with torch.no_grad():
        for start in range(0, len(texts), batch_size):
            vectors = model(texts[start : start + batch_size])
            chunks.append(vectors.numpy())
    return np.concatenate(chunks)


def restore(path):
    model = Encoder()
    model.load_state_dict(torch.load(path, weights_only=True))
    return model


def pretrained(folder):
    """Write weights as a training run would have left them."""
    torch.manual_seed(12)
    path = Path(folder) / "encoder.pt"
    torch.save(Encoder().state_dict(), path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--queries", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(1)

    with tempfile.TemporaryDirectory() as folder:
        model = restore(pretrained(folder))
    texts = torch.randint(5000, (args.texts, args.length))
    index = embed(model, texts, args.batch_size)
    print(f"index of {index.shape[0]} vectors with {index.shape[1]} numbers each")

    found = 0
    for number in range(args.queries):
        query = texts[number : number + 1].clone()
        query[0, :4] = torch.randint(5000, (4,))
        vector = embed(model, query, 1)
        best = np.argsort(-(index @ vector[0]))[:5]
        found += int(number in best)
    print(f"found {found} of {args.queries}")


if __name__ == "__main__":
    main()
