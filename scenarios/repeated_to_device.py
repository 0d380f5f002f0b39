"""Repeated .to(device): a batch that does not change crosses the link once.

**In short:** move to the device once what every step reads, and keep it there; no faster copy is as cheap as none.

```text
                      time of three steps ──────────────────▶
moved_each_step    ▒▒▒▒▒▒▒▒▒▒█▒▒▒▒▒▒▒▒▒▒█▒▒▒▒▒▒▒▒▒▒█
pinned_each_step   ▒▒█▒▒█▒▒█
moved_once         ███
called_again       ███  .to() finds the batch there

                   ▒ the batch on the link    █ the model
                   moved_once: its one copy came before the steps
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `moved_each_step` | `.to(device)` from ordinary memory in every step | baseline, 10.1 ms | the copy alone: 9.5 ms for 64 MiB (H200, `pinned_memory`) |
| `pinned_each_step` | page-locked memory, `non_blocking=True` | 5.0x | the copy alone: 1.27 ms (H200), at the speed of the link |
| `moved_once` | moved before the steps, and kept | 13x | nothing crosses the link: the step is the model alone |
| `called_again` | the kept batch, and `.to(device)` of it in every step | *same* as `moved_once` | `.to()` returns a tensor that is there already, and copies nothing |

## What happens

A tensor on the CPU stays there: `x.to(device)` returns a new tensor, and leaves `x` as it is. So a
step that begins with `x.to(device)` copies all of its bytes, however often it did so before. The
step takes

    step = copy + model

because the model reads what the copy brings. `non_blocking=True` frees the host, and the model
still waits.

## What to do

Move masks, tables, positions, constants and small data sets before the loop, and keep the result:
`x = x.to(device)`. A buffer of a module (`register_buffer`) moves with its module. Make on the device
what can be made there: `torch.zeros(n, device=device)`.

A second `.to(device)` is not what costs. Code that must run on either device may call it; the bytes
decide, so look at the copies in the bar of the step.

## Where it does not help

Batches that are new in every step have to cross. Pin them and copy ahead of their use: see
`pinned_memory`, `double_buffering` and `input_pipeline`. What is kept takes memory of the device all
the time. And a model that takes much longer than the copy gains little:

    gain = (copy + model) / model

`--sweep layers` shows how it shrinks.

## What the sources say

The bottleneck guide and the torch.compile tutorial list repeated `.to(device)` among the mistakes to
look for, without a figure. There is none for all: it follows from the two times above.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    needs=("cuda",),
    params={"mib": 64, "width": 1024, "layers": 1},
    smoke={"mib": 1, "width": 64},
    sweep={"layers": (1, 2, 4, 8, 16), "mib": (1, 4, 16, 64)},
    item="row",
    claim=(
        "bottleneck guide and torch.compile tutorial: move data to the device once, not in every "
        "step; without a figure"
    ),
    no_effect_reason=".to() of a tensor that is on the device already returns that very tensor",
    terms=(".to(device)", ".cuda()", "redundant copies", "host to device", "register_buffer"),
)


@scenario.variant
def moved_each_step(lab, mib, width, layers):
    """`.to(device)` of the same batch in every step, from ordinary memory."""
    return _model(lab, _batch(lab, mib, width), layers)


@scenario.variant
def pinned_each_step(lab, mib, width, layers):
    """The batch in page-locked memory, against ordinary memory; it still crosses in every step."""
    return _model(lab, _batch(lab, mib, width).pin_memory(), layers, non_blocking=True)


@scenario.variant
def moved_once(lab, mib, width, layers):
    """Moved before the steps and kept, against a copy in every step."""
    return _model(lab, _batch(lab, mib, width).to(lab.device), layers, moves=False)


@scenario.variant(against="moved_once")
def called_again(lab, mib, width, layers):
    """The kept batch, with a `.to(device)` in every step that has nothing to copy."""
    return _model(lab, _batch(lab, mib, width).to(lab.device), layers)


def _batch(lab, mib, width):
    return torch.randn(mib * MiB // 4 // width, width, device=lab.device).cpu()


def _model(lab, batch, layers, *, moves=True, non_blocking=False):
    width = batch.shape[1]
    weights = torch.randn(layers, width, width, device=lab.device) / width**0.5

    @torch.no_grad()
    def step():
        rows = batch
        if moves:
            with lab.phase("copy"):
                rows = batch.to(lab.device, non_blocking=non_blocking)
        with lab.useful():
            for weight in weights:
                rows = torch.mm(rows, weight).relu_()
            return rows.mean(1)

    return Work(
        step,
        flops=2 * layers * batch.numel() * width,
        dtype="fp32",
        items=len(batch),
        inputs=(batch, weights),
    )
