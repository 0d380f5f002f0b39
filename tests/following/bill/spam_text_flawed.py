"""Text handling for the spam classifier: corpus, vocabulary, batching."""
import re
import collections

import numpy as np
import torch

TOKEN = re.compile(r"[a-z']+")
UNK = 1


def make_corpus(n_messages, n_words=6000, seed=0):
    """Synthetic messages with a Zipf-like word distribution."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = []
    for i in range(n_words):
        words.append("".join(rng.choice(letters, size=3 + i % 7)) + "'" * (i % 2))
    ranks = np.exp(rng.uniform(0, np.log(n_words), size=(n_messages, 48))).astype(int) - 1
    labels = rng.integers(0, 2, size=n_messages)
    ranks[labels == 1, :6] = rng.integers(40, 60, size=(int(labels.sum()), 6))
    texts = [" ".join(words[r] for r in row).capitalize() + "!" for row in ranks]
    return texts, labels.tolist()


class Vocabulary:
    def __init__(self, texts, max_words=5000):
        counts = collections.Counter()
        for text in texts:
            counts.update(TOKEN.findall(text.lower()))
        self.words = ["<pad>", "<unk>"] + [w for w, _ in counts.most_common(max_words)]

    def __len__(self):
        return len(self.words)

    def encode(self, text):
        ids = []
        for token in TOKEN.findall(text.lower()):
            ids.append(self.words.index(token) if token in self.words else UNK)
        return ids


class Collate:
    def __init__(self, vocab, max_len=48):
        self.vocab = vocab
        self.max_len = max_len

    def __call__(self, items):
        batch = torch.zeros(len(items), self.max_len, dtype=torch.long)
        for row, (text, _) in enumerate(items):
            ids = self.vocab.encode(text)[: self.max_len]
            batch[row, : len(ids)] = torch.tensor(ids)
        return batch, torch.tensor([label for _, label in items])
