"""Train a small convolutional spam filter on short messages."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from spam_text_flawed import Collate, Vocabulary, make_corpus


class SpamNet(nn.Module):
    def __init__(self, n_words, dim=64, channels=32):
        super().__init__()
        self.embed = nn.Embedding(n_words, dim, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(dim, channels, k, padding=k // 2) for k in (1, 3, 5))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(3 * channels, 2))

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        pooled = [F.relu(conv(x)).amax(dim=2) for conv in self.convs]
        return self.head(torch.cat(pooled, dim=1))


def train_epoch(model, loader, opt):
    model.train()
    total = seen = 0.0
    for ids, labels in loader:
        loss = F.cross_entropy(model(ids), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(labels)
        seen += len(labels)
    return total / seen


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = seen = 0
    for ids, labels in loader:
        hits += (model(ids).argmax(dim=1) == labels).sum().item()
        seen += len(labels)
    return hits / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=2400)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)

    texts, labels = make_corpus(args.messages)
    split = int(0.85 * len(texts))
    vocab = Vocabulary(texts[:split])
    collate = Collate(vocab)
    pairs = list(zip(texts, labels))
    train = DataLoader(pairs[:split], batch_size=args.batch_size, shuffle=True, collate_fn=collate)
    valid = DataLoader(pairs[split:], batch_size=64, collate_fn=collate)

    model = SpamNet(len(vocab))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        loss = train_epoch(model, train, opt)
        print(f"epoch {epoch}: loss {loss:.4f}  valid acc {accuracy(model, valid):.3f}")


if __name__ == "__main__":
    main()
