"""Input pipeline: decode the next batch while the model works on this one.

A device that waits for data does no work. Every sample here lies compressed in memory, as images do
on a disk, and is really decoded. A step is one whole epoch: its time is that of decoding plus that
of the model, minus their overlap. Goodput is the share of the time in which the model runs.

With no worker the loop itself decodes. A GPU still works on the previous batch meanwhile, since
launches are not waited for, and then it idles: the step takes about as long as the longer of the
two, which is the decoding. Workers are processes that decode ahead, and n of them decode n batches
at a time. So measure both alone: the decoding (`workers_0`: on a GPU its whole step, since the
model hides behind it; on a CPU its phase "data") and the model (`resident`, the whole step). Their
ratio, rounded up, is the least number of workers (measured here on an H200: 501 and 161 ms, so 4);
take some more, as long as there are cores for them, because a batch also has to be copied to shared
memory, sent and fetched. No number of workers hides the first batch of an epoch, or the copy to the
device.

`pinned` has a thread copy every batch to page-locked memory, so that the host does not wait for the
copy to the device. `resident` has decoded everything before the steps, and is the best that the
others could reach.

Workers do not help where decoding is cheap, because a batch from a worker is more expensive than
slicing a tensor. They do not help where all cores are busy either: with two cores a second worker
slows the model. Workers that are not persistent are started anew in every epoch. Where the decoded
data fits into memory, decode it once and use no pipeline.

An epoch starts with an idle pipeline and drains it, so that no worker reads ahead while another
variant is measured.
"""

import zlib
from functools import cache

import torch
from torch.utils.data import DataLoader, Dataset

from gpulab import Scenario, Work

scenario = Scenario(
    topic="data movement",
    params={"samples": 2048, "batch": 64, "rows": 128, "width": 256, "hidden": 24576, "workers": 8},
    cpu={"samples": 192, "batch": 16, "hidden": 160, "workers": 1},
    smoke={"samples": 8, "batch": 4, "rows": 8, "width": 32, "hidden": 32, "workers": 1},
    item="sample",
    claim="performance basics: 40-60 % goodput of a naive loop",
)
_DISTINCT = 256


@cache  # every build gets the same bytes: packing takes longer than unpacking
def _packed(samples, rows, width, seed):
    draw = torch.Generator().manual_seed(seed)
    signal = torch.sin(
        6 * torch.rand(samples, rows, 1, generator=draw) + torch.linspace(0, 20, width)
    )
    signal += torch.randn(samples, rows, width, generator=draw) / 50
    return [zlib.compress(sample.numpy(), level=1) for sample in (signal * 64 + 128).byte()]


class Compressed(Dataset):
    """Samples of a smooth, slightly noisy signal in bytes, compressed one by one; few differ, and
    all are decoded.
    """

    def __init__(self, samples, rows, width):
        self.samples, self.shape = samples, (rows, width)
        self.packed = _packed(min(samples, _DISTINCT), rows, width, torch.initial_seed())

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        decoded = zlib.decompress(self.packed[index % len(self.packed)])
        return torch.frombuffer(bytearray(decoded), dtype=torch.uint8).view(self.shape)


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
    """A thread moves the workers' batches to page-locked memory, and copies to the device are not
    waited for.
    """
    loader = _ahead(Compressed(samples, rows, width), batch, workers, pin_memory=True)
    yield _epoch(lab, loader, samples, batch * rows, width, hidden, non_blocking=True)
    loader._iterator = None  # the last reference: it ends its workers


@scenario.variant
def resident(lab, samples, batch, rows, width, hidden):
    """Everything is decoded once, before the steps, and kept on the device."""
    decoded = [
        loaded.to(lab.device) for loaded in DataLoader(Compressed(samples, rows, width), batch)
    ]
    return _epoch(lab, decoded, samples, batch * rows, width, hidden)


def _ahead(dataset, batch, workers, **how):
    # Forked: the workers touch no device, and get the data set without a copy.
    return DataLoader(
        dataset,
        batch,
        num_workers=workers,
        persistent_workers=True,
        multiprocessing_context="fork",
        **how,
    )


def _epoch(lab, loader, samples, count, width, hidden, non_blocking=False):
    # the same weights, whatever random numbers the data took
    torch.manual_seed(torch.initial_seed())
    up = torch.randn(width, hidden, device=lab.device) / width**0.5
    down = torch.randn(hidden, width, device=lab.device) / hidden**0.5
    # no allocation is to be seen here
    scaled, out = (torch.empty(count, width, device=lab.device) for _ in range(2))
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

    return Work(
        step,
        flops=4 * len(loader) * count * width * hidden,
        dtype="fp32",
        items=samples,
        inputs=(up, down),
    )
