"""Input pipeline: decode the next batch while the model works on this one.

A device that waits for data is as idle as one that is switched off. Every sample here lies compressed in memory, as
images do on a disk, and is really decoded: the step is one whole epoch, and its time is the decoding, the model, and
whatever of the two overlaps. Goodput is the share of the time in which the model runs.

With no worker the loop decodes a batch, runs the model, decodes the next: the model waits for every sample. Workers
are processes that decode ahead, so that at best the longer of the two is all that is left; more workers divide the
decoding further, as long as there are idle cores for them. Data decoded once and kept on the device needs none of it.

It does not help where decoding is cheap: a batch from a worker is copied to shared memory and its handle sent through
a pipe, dearer than slicing a tensor. Nor where the cores are busy: on two of them the second worker takes its time
from the model. Workers that are not persistent are started anew in every epoch. And where the data fits into memory,
decode it once and forget the pipeline.

No worker may read ahead into another variant's time: an epoch starts with an idle pipeline and drains it.
"""

import lzma
from functools import cache

import torch
from torch.utils.data import DataLoader, Dataset

from gpulab import Scenario, Work

scenario = Scenario(
    topic="data movement",
    params={"samples": 256, "batch": 16, "rows": 128, "width": 256, "hidden": 16384, "workers": 8},
    cpu={"samples": 32, "batch": 4, "rows": 192, "hidden": 768, "workers": 1},
    smoke={"samples": 8, "batch": 4, "rows": 8, "width": 32, "hidden": 32, "workers": 1},
    claim="data starvation: utilization falls to 20-60 %, workers and pinned memory bring it back",
)


@cache  # every build gets the same bytes: packing takes longer than unpacking
def _packed(samples, rows, width, seed):
    draw = torch.Generator().manual_seed(seed)
    signal = torch.sin(6 * torch.rand(samples, rows, 1, generator=draw) + torch.linspace(0, 20, width))
    signal += torch.randn(samples, rows, width, generator=draw) / 50
    return [lzma.compress(bytes(sample.flatten().tolist()), preset=0) for sample in (signal * 64 + 128).byte()]


class Compressed(Dataset):
    """Samples of a smooth, slightly noisy signal in bytes, compressed one by one."""

    def __init__(self, samples, rows, width):
        self.shape, self.packed = (rows, width), _packed(samples, rows, width, torch.initial_seed())

    def __len__(self):
        return len(self.packed)

    def __getitem__(self, index):
        return torch.frombuffer(bytearray(lzma.decompress(self.packed[index])), dtype=torch.uint8).view(self.shape)


@scenario.variant
def workers_0(lab, samples, batch, rows, width, hidden):
    """Each batch is decoded when the loop asks for it."""
    loader = DataLoader(Compressed(samples, rows, width), batch)
    return _epoch(lab, loader, samples, batch * rows, width, hidden)


@scenario.variant
def workers_n(lab, samples, batch, rows, width, hidden, workers):
    """Persistent workers decode ahead."""
    loader = _ahead(Compressed(samples, rows, width), batch, workers)
    yield _epoch(lab, loader, samples, batch * rows, width, hidden)
    loader._iterator = None  # the last reference: it ends its workers


@scenario.variant(needs=("cuda",))
def pinned(lab, samples, batch, rows, width, hidden, workers):
    """A thread moves their batches to page-locked memory, and copies to the device are not waited for."""
    loader = _ahead(Compressed(samples, rows, width), batch, workers, pin_memory=True)
    yield _epoch(lab, loader, samples, batch * rows, width, hidden, non_blocking=True)
    loader._iterator = None  # the last reference: it ends its workers


@scenario.variant
def resident(lab, samples, batch, rows, width, hidden):
    """Everything is decoded once, before the steps, and kept on the device."""
    decoded = [loaded.to(lab.device) for loaded in DataLoader(Compressed(samples, rows, width), batch)]
    return _epoch(lab, decoded, samples, batch * rows, width, hidden)


def _ahead(dataset, batch, workers, **how):
    # Forked: the workers touch no device, and get the data set without a copy.
    return DataLoader(
        dataset, batch, num_workers=workers, persistent_workers=True, multiprocessing_context="fork", **how
    )


def _epoch(lab, loader, samples, count, width, hidden, non_blocking=False):
    torch.manual_seed(torch.initial_seed())  # the same weights, whatever random numbers the data took
    up = torch.randn(width, hidden, device=lab.device) / width**0.5
    down = torch.randn(hidden, width, device=lab.device) / hidden**0.5
    scaled, out = (torch.empty(count, width, device=lab.device) for _ in range(2))  # no allocation is to be seen here
    between = torch.empty(count, hidden, device=lab.device)

    @torch.no_grad()
    def step():
        losses = []
        with lab.phase("data"):
            batches = iter(loader)
            batch = next(batches, None)
        while batch is not None:
            with lab.phase("copy"):
                batch = batch.to(lab.device, non_blocking=non_blocking)
            with lab.useful():
                torch.div(batch.view(count, width), 128, out=scaled).sub_(1)
                torch.mm(scaled, up, out=between).relu_()
                losses.append(torch.mm(between, down, out=out).sub_(scaled).square_().mean())
            with lab.phase("data"):
                batch = next(batches, None)
        return torch.stack(losses)

    return Work(step, flops=4 * len(loader) * count * width * hidden, dtype="fp32", items=samples, inputs=(up, down))
