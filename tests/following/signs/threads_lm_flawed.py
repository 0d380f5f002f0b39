"""Train a character model for a while; settings as on our 24-core nodes."""

import os

CORES = 24
os.environ["OMP_NUM_THREADS"] = str(CORES)
os.environ["MKL_DYNAMIC"] = "FALSE"

import torch  # noqa: E402
from torch import nn  # noqa: E402

TEXT = (
    "the quick brown fox jumps over the lazy dog while seven wizards quietly "
    "examine boxes of jade and find that each of them is empty once again. "
) * 40


class Codec:
    def __init__(self, text):
        self.symbols = sorted(set(text))
        self.ids = {symbol: place for place, symbol in enumerate(self.symbols)}

    def encode(self, text):
        return torch.tensor([self.ids[symbol] for symbol in text])

    def decode(self, ids):
        return "".join(self.symbols[place] for place in ids)


class CharacterModel(nn.Module):
    def __init__(self, symbols, width=128, length=64):
        super().__init__()
        self.length = length
        self.embed = nn.Embedding(symbols, width)
        self.places = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, symbols)

    def forward(self, ids):
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.embed(ids) + self.places.weight[:length]
        return self.out(self.body(x, mask=mask, is_causal=True))

    @torch.no_grad()
    def continue_text(self, ids, count):
        for _ in range(count):
            scores = self(ids[:, -self.length :])[:, -1]
            ids = torch.cat([ids, scores.argmax(dim=1, keepdim=True)], dim=1)
        return ids


torch.manual_seed(0)
codec = Codec(TEXT)
data = codec.encode(TEXT)
model = CharacterModel(len(codec.symbols))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
print(f"{torch.get_num_threads()} threads")

for step in range(12):
    starts = torch.randint(len(data) - 65, (16,))
    chunks = torch.stack([data[start : start + 65] for start in starts.tolist()])
    scores = model(chunks[:, :-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), chunks[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(f"step {step}: {loss.item():.3f}")

written = model.continue_text(codec.encode("the quick ")[None], 30)[0].tolist()
print(repr(codec.decode(written)))
