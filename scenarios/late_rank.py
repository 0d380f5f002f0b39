"""Late rank: every rank takes as long as the slowest, and no rank's times say which it is.

**In short:** all ranks take equally long because the early ones wait, so look at each rank's own work: the late rank waits least.

```text
          forward and backward of one step
even      rank 0  ████████│
          rank 1  ████████│
one_late  rank 0  ████▒▒▒▒▒▒▒▒│
          rank 1  ████████████│
balanced  rank 0  ████████│
          rank 1  ████████│

          █ own work   ▒ waiting, in the backward   │ all-reduced
```

| variant | what changes | expected (two H200s) | why |
|---|---|---|---|
| `even` | documents of one length | baseline, 8.70 ms | as many rows on each rank |
| `one_late` | as many documents each, the long ones on the last rank | 0.70x | the bound is 1/`longer`, 0.67x: the slowest rank's work |
| `balanced` | the same documents, dealt by their rows | *same* as `even`; 1.41x over `one_late` | the longest first, each to the rank with the fewest rows |

## Why times name nobody

Data-parallel ranks meet in every step, where gradients are all-reduced. The others wait there for a
late rank, inside their backward. So every step takes the same, and the early ranks have the
*longer* backward. Who goes by these times finds nobody, or the wrong rank. A profiler books the
waiting as all-reduce.

## What tells

Each rank's own work, without the all-reduce (DDP's `no_sync()`), and when each arrives at it. The
figures of `one_late` and `balanced` are of their builds, last rank to first. With two ranks and
`longer=1.5` the own work is 3 to 1, and the backward of the late rank the shorter.

torch's flight recorder keeps the arrivals. `gpulab --run -- torchrun ... train.py` shows them for a
job of your own.

## Where it does not help

Unequal lengths, as from data sorted by length, can be dealt evenly. Other causes look the same from
here: a slow data loader, a garbage collection, a rank that writes checkpoints or logs, a throttled
GPU. Those are not balanced but removed.

The link is no part of it. The default has 67 MB of gradients, 0.22 ms at 300 GB/s (NVLink), 2.7 ms
at 25 GB/s. Most of that is behind a backward of some 5 ms (H100).

## A mean that is wrong

All variants take the same rows and give the same gradients, compared on every rank. For that the
loss is divided by all rows. A mean over each rank's own rows, averaged by DDP, counts a row of the
late rank for less: wrong with unequal ranks, and nothing fails.
"""

from statistics import median
from time import perf_counter

import torch
from torch.nn.parallel import DistributedDataParallel

from gpulab import Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={"ranks": 2, "layers": 4, "width": 2048, "rows": 4096, "longer": 1.5},
    cpu={"layers": 3, "width": 256, "rows": 512},
    smoke={"layers": 2, "width": 16, "rows": 64},
    sweep={"longer": (1.0, 1.25, 1.5, 1.75)},
    ranks="ranks",
    ladder=True,
    item="row",
    no_effect_reason="the rows are dealt evenly, as in the baseline: no rank is late",
    claim="TraceML, issue 252: 200 ms late on one rank, backward 293.0, 292.2, 293.0, 293.1 ms",
    terms=("stragglers", "load imbalance", "flight recorder", "no_sync", "ddp"),
)
_DOCUMENTS = 8
"""Of each rank, where all get as many."""
_TIMED = 7


@scenario.variant
def even(lab, layers, width, rows):
    """Documents of one length, dealt by number: as many rows on each rank."""
    lengths = [rows // _DOCUMENTS] * (_DOCUMENTS * lab.ranks)
    return _gradients(lab, layers, width, lengths, _by_number(lengths))


@scenario.variant
def one_late(lab, layers, width, rows, longer):
    """The same rows in unequal documents, dealt by number: the long ones are on the last rank."""
    lengths = _unequal(lab.ranks, rows, longer)
    return _gradients(lab, layers, width, lengths, _by_number(lengths))


@scenario.variant
def balanced(lab, layers, width, rows, longer):
    """The documents of one_late, dealt by their rows: as many on each rank as in even."""
    lengths = _unequal(lab.ranks, rows, longer)
    return _gradients(lab, layers, width, lengths, _by_rows(lengths, lab.ranks))


def _unequal(ranks, rows, longer):
    """The lengths of all documents: as many rows together as if they were of one length."""
    long = int(rows // _DOCUMENTS * longer)
    count = _DOCUMENTS * (ranks - 1)
    rest = rows // _DOCUMENTS * _DOCUMENTS * ranks - long * _DOCUMENTS
    short = [rest // count + (place < rest % count) for place in range(count)]
    return short + [long] * _DOCUMENTS


def _by_number(lengths):
    """The rank of each document: equal numbers of them, in their order."""
    return [place // _DOCUMENTS for place in range(len(lengths))]


def _by_rows(lengths, ranks):
    """The rank of each document: the longest first, to the rank with the fewest rows."""
    rank_of = [0] * len(lengths)
    rows = [0] * ranks
    for place in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        rank_of[place] = rows.index(min(rows))
        rows[rank_of[place]] += lengths[place]
    return rank_of


class _Model(torch.nn.Module):
    """Layers that are alike on every rank and for every seed, and a mean to subtract, a buffer:
    DDP gives all ranks that of rank 0 before each forward.
    """

    def __init__(self, lab, layers, width):
        super().__init__()
        alike = torch.Generator(lab.device).manual_seed(0)
        blocks = []
        for _ in range(layers):
            linear = torch.nn.Linear(width, width, device=lab.device)
            for parameter in linear.parameters():
                torch.nn.init.normal_(parameter, std=width**-0.5, generator=alike)
            blocks += [linear, torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*blocks[:-1])
        self.register_buffer("mean", torch.randn(width, device=lab.device))

    def forward(self, rows):
        return self.layers(rows - self.mean)


def _gradients(lab, layers, width, lengths, rank_of):
    model = _Model(lab, layers, width)
    parallel = DistributedDataParallel(model, process_group=lab.group)
    alike = torch.Generator(lab.device).manual_seed(1)  # every rank can read every document
    shape = sum(lengths), width
    documents = torch.randn(shape, generator=alike, device=lab.device).split(lengths)
    targets = torch.randn(shape, generator=alike, device=lab.device).split(lengths)
    places = [place for place, rank in enumerate(rank_of) if rank == lab.rank]
    given = torch.cat([documents[place] for place in places])
    wanted = torch.cat([targets[place] for place in places])
    numbers = sum(lengths) * width  # of all ranks

    def forward():
        # DDP divides the sum of all ranks by their number
        return (parallel(given) - wanted).square().sum() * lab.ranks / numbers

    def step():
        parallel.zero_grad()
        with lab.phase("forward"):
            loss = forward()
        with lab.phase("backward"):
            loss.backward()

    if len(set(lengths)) > 1:
        _report_times(lab, parallel, forward)
    gradient_bytes = sum(parameter.nbytes for parameter in model.parameters())
    return Work(
        step,
        bytes=gradient_bytes * 2 * (lab.ranks - 1) / lab.ranks,
        # of rank 0; the first layer's input has no gradient
        flops=len(given) * width**2 * (6 * layers - 2),
        dtype="fp32",
        items=sum(lengths),
        inputs=model.mean,
        output=lambda: [parameter.grad for parameter in model.parameters()],
    )


def _report_times(lab, parallel, forward):
    """How long the last rank is in its backward, and in its own work, for one of the first."""
    backward_s = []
    own_s = []
    for _ in range(_TIMED):
        torch.distributed.barrier(lab.group)
        loss = forward()
        backward_s.append(_seconds(lab, loss.backward))
        with parallel.no_sync():
            own_s.append(_seconds(lab, lambda: forward().backward()))
    own = torch.tensor([median(backward_s), median(own_s)], device=lab.device)
    of_all = [torch.empty_like(own) for _ in range(lab.ranks)]
    torch.distributed.all_gather(of_all, own, group=lab.group)
    backward, work = (of_all[-1] / of_all[0]).tolist()
    lab.report("backward, last rank to first", round(backward, 2))
    lab.report("own work, last rank to first", round(work, 2))


def _seconds(lab, act):
    if lab.device.type == "cuda":
        torch.cuda.synchronize()
    start = perf_counter()
    act()
    if lab.device.type == "cuda":
        torch.cuda.synchronize()
    return perf_counter() - start
