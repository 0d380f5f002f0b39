"""Train a part-of-speech tagger on sentences of very different lengths."""

import argparse
import random
import time

import torch
from torch import nn

VOCABULARY = 2000
TAGS = 17


class Tagger(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=2 * width, dropout=0.1, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.classify = nn.Linear(width, TAGS)

    def forward(self, words):
        return self.classify(self.encoder(self.embed(words)))


def make_corpus(size, generator):
    """Return sentences as lists of word ids, with their tags."""
    corpus = []
    for _ in range(size):
        length = generator.randint(8, 60)
        words = [generator.randrange(1, VOCABULARY) for _ in range(length)]
        corpus.append((words, [word % TAGS for word in words]))
    return corpus


def pad(sentences, longest):
    words = torch.zeros(len(sentences), longest, dtype=torch.long)
    tags = torch.full((len(sentences), longest), -100)
    for row, (ids, labels) in enumerate(sentences):
        words[row, : len(ids)] = torch.tensor(ids)
        tags[row, : len(labels)] = torch.tensor(labels)
    return words, tags


def batches(corpus, size):
    for start in range(0, len(corpus), size):
        sentences = corpus[start : start + size]
        longest = 32 if max(len(words) for words, _ in sentences) <= 32 else 64
        yield pad(sentences, longest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(1)
    corpus = make_corpus(args.sentences, random.Random(1))
    tagger = Tagger(args.width, args.layers)
    compiled = torch.compile(tagger, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.AdamW(tagger.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    began = time.perf_counter()
    for epoch in range(2):
        total = 0.0
        for words, tags in batches(corpus, args.batch):
            optimizer.zero_grad()
            logits = compiled(words)
            loss = criterion(logits.flatten(0, 1), tags.flatten())
            loss.backward()
            optimizer.step()
            total += loss.item()
        seconds = time.perf_counter() - began
        print(f"epoch {epoch}: loss {total:.2f}, {seconds:.1f} s so far")


if __name__ == "__main__":
    main()
