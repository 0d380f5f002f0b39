"""Streaming speech gate: a learned mask over a bank of decaying echo traces, block by block."""
import math

import torch
import torch.nn as nn

BLOCK, BANDS, TAPS = 128, 64, 1024


def recording(blocks, talk, generator):
    """A talker who speaks at the beginning of the call and then only listens."""
    t = torch.arange(BLOCK, dtype=torch.float32)
    for index in range(blocks):
        if index < talk:
            pitch = 0.05 + 0.02 * math.sin(index / 9)
            yield torch.sin(pitch * (t + index * BLOCK)) + 0.05 * torch.randn(BLOCK, generator=generator)
        else:
            yield torch.zeros(BLOCK)


class Analysis(nn.Module):
    """Filter bank from one block of samples to band energies."""

    def __init__(self):
        super().__init__()
        k = torch.arange(BANDS, dtype=torch.float32)[:, None]
        n = torch.arange(BLOCK, dtype=torch.float32)[None, :]
        self.register_buffer("basis", torch.cos(math.pi / BLOCK * (n + 0.5) * (k + 0.5)))

    def forward(self, block):
        return self.basis @ block / BLOCK


class EchoTraces:
    """Every band keeps a bank of taps that decay at their own rates."""

    def __init__(self, generator):
        self.decay = 0.80 + 0.05 * torch.rand(BANDS, TAPS, generator=generator)
        self.gain = torch.randn(BANDS, TAPS, generator=generator) / TAPS
        self.state = torch.zeros(BANDS, TAPS)

    def push(self, bands):
        self.state.mul_(self.decay)
        self.state.add_(bands[:, None])
        return (self.state * self.gain).sum(dim=1)


class MaskNet(nn.Module):
    def __init__(self, hidden=512):
        super().__init__()
        self.cell = nn.GRUCell(2 * BANDS, hidden)
        self.mask = nn.Linear(hidden, BANDS)

    def forward(self, features, state):
        state = self.cell(features[None], state)
        return torch.sigmoid(self.mask(state))[0], state


@torch.inference_mode()
def process(stream, analysis, traces, net):
    state = None
    energy = []
    for block in stream:
        bands = analysis(block)
        echo = traces.push(bands)
        mask, state = net(torch.cat([bands, echo]), state)
        cleaned = (mask * (bands - echo)) @ analysis.basis
        energy.append(cleaned.square().mean())
    return torch.stack(energy)


def report(energy, chunk=1000):
    for start in range(0, len(energy), chunk):
        level = 10 * torch.log10(energy[start : start + chunk].mean() + 1e-12)
        print(f"blocks {start:5d}..: {level.item():7.2f} dB")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    generator = torch.Generator().manual_seed(1)
    stream = recording(blocks=4500, talk=300, generator=generator)
    energy = process(stream, Analysis(), EchoTraces(generator), MaskNet().eval())
    report(energy)


if __name__ == "__main__":
    main()
