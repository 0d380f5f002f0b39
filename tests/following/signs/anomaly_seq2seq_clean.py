"""Teach a GRU encoder and decoder to reverse sequences."""

import argparse
import time

import torch
from torch import nn


class Reverser(nn.Module):
    def __init__(self, symbols, width):
        super().__init__()
        self.embed = nn.Embedding(symbols + 1, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, symbols)
        self.start = symbols

    def forward(self, source, target):
        _, state = self.encoder(self.embed(source))
        state = state[0]
        token = torch.full((len(source),), self.start)
        outputs = []
        for position in range(target.shape[1]):
            state = self.cell(self.embed(token), state)
            outputs.append(self.out(state))
            token = target[:, position]
        return torch.stack(outputs, dim=1)


class Trainer:
    def __init__(self, model, lr, clip=1.0, debug=True):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()
        self.clip = clip
        self.debug = debug

    def loss_of(self, source, target):
        logits = self.model(source, target)
        loss = self.criterion(logits.flatten(0, 1), target.flatten())
        if self.debug and not torch.isfinite(loss):
            raise FloatingPointError("loss is not finite")
        return loss

    def update(self, source, target):
        self.optimizer.zero_grad()
        loss = self.loss_of(source, target)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbols", type=int, default=20)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()

    torch.manual_seed(11)
    torch.set_num_threads(1)
    trainer = Trainer(Reverser(options.symbols, 96), lr=1e-3)
    began = time.time()
    mean = 0.0
    for step in range(1, options.steps + 1):
        source = torch.randint(options.symbols, (options.batch, options.length))
        mean = 0.95 * mean + 0.05 * trainer.update(source, source.flip(1))
        if step % 10 == 0:
            corrected = mean / (1 - 0.95**step)
            print(f"step {step}: loss {corrected:.3f} after {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
