"""Compiled sequence tagger on sentences of uneven length."""
import math

import torch
import torch.nn as nn
import torch._dynamo

torch._dynamo.config.recompile_limit = 64
PAD, TAGS, VOCAB = 0, 9, 500


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)
        scores = scores.masked_fill(mask[:, None, None, :], -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d))


class Tagger(nn.Module):
    def __init__(self, dim=96, heads=4):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.tags = nn.Linear(dim, TAGS)

    def forward(self, ids):
        mask = ids.eq(PAD)
        x = self.embed(ids)
        x = x + self.attention(self.norm1(x), mask)
        x = x + self.mlp(self.norm2(x))
        return self.tags(x)


def sentences(n, generator):
    for _ in range(n):
        length = int(torch.randint(12, 60, (), generator=generator))
        ids = torch.randint(1, VOCAB, (length,), generator=generator)
        yield ids, (ids * 7 + torch.roll(ids, 1)) % TAGS


def batches(data, size):
    """Sort by length so that little is padded, then pad each batch to a multiple of 32."""
    data = sorted(data, key=lambda pair: len(pair[0]))
    for start in range(0, len(data), size):
        chunk = data[start : start + size]
        longest = max(len(ids) for ids, _ in chunk)
        width = (longest + 31) // 32 * 32
        ids = torch.full((len(chunk), width), PAD)
        tags = torch.full((len(chunk), width), -100)
        for row, (sentence, gold) in enumerate(chunk):
            ids[row, : len(sentence)] = sentence
            tags[row, : len(gold)] = gold
        yield ids, tags


def train_step(model, opt, ids, tags):
    logits = model(ids)
    loss = nn.functional.cross_entropy(logits.reshape(-1, TAGS), tags.reshape(-1), ignore_index=-100)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main(epochs=2):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(5)
    data = list(sentences(256, generator))
    model = torch.compile(Tagger(), backend="aot_eager", dynamic=False)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        losses = [train_step(model, opt, ids, tags) for ids, tags in batches(data, 32)]
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} over {len(losses)} batches")


if __name__ == "__main__":
    main()
