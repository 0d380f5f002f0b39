"""Graph breaks: one `if` on a tensor cuts a compiled step into pieces.

**In short:** a compiled graph ends where Python needs a tensor's value, so write the condition as arithmetic.

```text
one layer of 16               [ ] compiled as one piece   ? host waits

eager    * + relu amax >  ? if ─▶ /
broken   * + relu [amax >]  ? if ─▶ [/]
cond    [* + relu amax >  ? cond ─▶ / or a copy    next layer ... ]
where   [* + relu amax >  /  select    next layer ...             ]

broken: 16 pieces [amax >], and 8 [/], for every other layer: 24
```

| variant | what changes | expected (H200; a CPU) | why |
|---|---|---|---|
| `eager` | an `if` in each layer, not compiled | baseline, 1.09 ms (H200) | each operation a call; each `if` a wait |
| `broken` | the same function, compiled | 0.5x; 0.3x | 24 pieces a step (H200), each with guards and wrappers |
| `cond` | `torch.cond` in place of `if` | 0.9x, *inconclusive*; 1.0-1.4x | one piece, but the host still reads each condition |
| `where` | `torch.where`: both sides, then a select | 2.1x; 1.7-2.6x | one piece, no wait, fused across layers |

## Why the graph ends there

`torch.compile` traces Python into a graph without knowing the values of tensors. An `if` on one
(`if x.max() > 1`) needs the value. So the piece before it runs, the host reads the condition, and
the branch that is taken is a graph of its own. If the break is inside a loop, as here, the whole
function with the loop stays uncompiled. Only the functions that it calls are compiled.

## What a break costs

- Each piece checks guards (that shapes and types are those of the compilation) and goes through the
  compiler's wrappers: some tens of microseconds of host time.
- Nothing is fused across a break.
- On a GPU each condition waits until the queue is empty.

Where kernels are short, pieces can cost more than compiling saves: then the broken step is slower
than eager. Where each piece runs for milliseconds, a break costs next to nothing.

## Which replacement

`torch.where` computes both sides, which is right when both are cheap. `torch.cond` keeps two
branches in one graph and runs one. It removes the pieces, not the wait: Inductor's code reads the
condition with `.item()`, and fuses nothing across it. A branch must not return its input, so data
that stays as it is gets copied. `eager` copies nothing, so `cond` may be slower.

## How to find breaks

`torch._dynamo.explain(f)(x)` and TORCH_LOGS=graph_breaks list them. `torch.compile(f,
fullgraph=True)` makes them errors. `.item()`, `print` and calls into C extensions break graphs too.
The figure *compiled pieces a step* is 1 where nothing breaks the graph.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    params={"layers": 16, "rows": 64, "width": 1024},
    cpu={"layers": 6, "rows": 16, "width": 256},
    smoke={"layers": 2, "rows": 4, "width": 32},
    sweep={"rows": (16, 64, 256, 1024, 4096)},
    ladder=True,
    item="layer",
    claim=(
        "our own measurement: broken 0.3x, cond 1.0-1.4x, where 1.7-2.6x on a CPU; 0.5x, 0.9x, "
        "2.1x on an H200"
    ),
    no_effect_reason=(
        "kernels far longer than the Python between them, or conditions cost what the compiler "
        "saves"
    ),
    terms=("torch.compile", "dynamo", "fullgraph", "torch.cond", "torch.where", "data-dependent"),
)


@scenario.variant
def eager(lab, layers, rows, width):
    """The layers with an `if` in each, not compiled."""
    return _work(lab, layers, rows, width, _with_if)


@scenario.variant(needs=("compiler",))
def broken(lab, layers, rows, width):
    """The same function, compiled: every `if` breaks the graph."""
    return _work(lab, layers, rows, width, _with_if, compiled=True)


@scenario.variant(needs=("compiler",))
def cond(lab, layers, rows, width):
    """`torch.cond`: one graph, whose conditions the host still reads."""
    return _work(lab, layers, rows, width, _with_cond, compiled=True)


@scenario.variant(needs=("compiler",))
def where(lab, layers, rows, width):
    """`torch.where`: one graph without any condition."""
    return _work(lab, layers, rows, width, _with_where, compiled=True)


def _with_if(data, scales, shifts):
    for scale, shift in zip(scales, shifts, strict=True):
        data = _limited_by_if(torch.relu(data * scale + shift))
    return data


def _limited_by_if(data):
    largest = data.amax()
    if largest > 1:
        data = data / largest
    return data


def _with_cond(data, scales, shifts):
    for scale, shift in zip(scales, shifts, strict=True):
        data = torch.relu(data * scale + shift)
        largest = data.amax()
        data = torch.cond(
            largest > 1, lambda data, by: data / by, lambda data, by: data.clone(), (data, largest)
        )
    return data


def _with_where(data, scales, shifts):
    for scale, shift in zip(scales, shifts, strict=True):
        data = torch.relu(data * scale + shift)
        largest = data.amax()
        data = torch.where(largest > 1, data / largest, data)
    return data


def _work(lab, layers, rows, width, function, compiled=False):
    data = torch.randn(rows, width, device=lab.device)
    # Every other layer makes its data larger than the limit, so that both branches are taken in a
    # step.
    scales = [
        (3 if layer % 2 == 0 else 0.7) + torch.rand(width, device=lab.device) / 4
        for layer in range(layers)
    ]
    shifts = [torch.randn(width, device=lab.device) / 20 for _ in range(layers)]
    run = torch.compile(function) if compiled else function

    @torch.no_grad()
    def step():
        return run(data, scales, shifts)

    if compiled:
        lab.report("compiled pieces a step", _pieces(function, data, scales, shifts))
    return Work(step, items=layers, inputs=(data, *scales, *shifts))


@torch.no_grad()
def _pieces(function, *given):
    """Into how many compiled pieces one call falls: how often a backend that only counts is
    called.
    """
    calls = []

    def counting(graph, _):
        return lambda *tensors: calls.append(graph) or graph(*tensors)

    torch.compile(function, backend=counting)(*given)
    return len(calls)
