"""Classify reviews with a bag of words; text is cut into tokens while training."""

import random
import re
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS = [
    "good",
    "bad",
    "fine",
    "awful",
    "slow",
    "quick",
    "warm",
    "cold",
    "broken",
    "lovely",
    "poor",
]
LIKED = {"good", "fine", "quick", "warm", "lovely"}
BUCKETS = 20000


class Reviews(Dataset):
    def __init__(self, count):
        generator = random.Random(6)
        self.texts = []
        self.labels = []
        for _ in range(count):
            words = [generator.choice(WORDS) for _ in range(generator.randint(80, 160))]
            self.texts.append(" ".join(words).capitalize() + "!")
            liked = sum(word in LIKED for word in words)
            self.labels.append(int(2 * liked > len(words)))

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], self.labels[index]


class Tokenizer:
    """Turns texts into hashed n-grams."""

    def __init__(self, longest):
        self.pattern = re.compile(r"[a-z]+|[!?.]")
        self.longest = longest

    def tokens(self, text):
        words = self.pattern.findall(text.lower())
        found = []
        for size in range(1, self.longest + 1):
            for start in range(len(words) - size + 1):
                gram = " ".join(words[start : start + size])
                found.append(zlib.crc32(gram.encode()) % BUCKETS)
        return found

    def collate(self, items):
        ids, offsets, labels = [], [], []
        for text, label in items:
            offsets.append(len(ids))
            ids.extend(self.tokens(text))
            labels.append(label)
        return torch.tensor(ids), torch.tensor(offsets), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, width, mode="mean", sparse=True)
        self.out = nn.Linear(width, 2)

    def forward(self, ids, offsets):
        return self.out(torch.relu(self.bag(ids, offsets)))


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    tokenizer = Tokenizer(longest=3)
    loader = DataLoader(
        Reviews(3000),
        batch_size=32,
        shuffle=True,
        collate_fn=tokenizer.collate,
    )
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    for epoch in range(4):
        right = 0
        for ids, offsets, labels in loader:
            scores = model(ids, offsets)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(dim=1) == labels).sum().item()
        print(f"epoch {epoch}: {right / len(loader.dataset):.3f} right")


if __name__ == "__main__":
    main()
