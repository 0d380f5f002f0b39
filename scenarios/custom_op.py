"""Custom op: tell torch.compile of an operation that it cannot trace.

**In short:** a foreign function cuts a compiled step at each call, and registered as an operator it does not.

```text
foreign function      a layer compiled in two pieces

  │ before │──▶ host ──▶ foreign ──▶ host ──▶│ after │
  └ piece ─┘    guards   function    guards  └ piece ┘

registered operator   all layers in one piece

  │ before ──▶ operator ──▶ after, before ──▶ operator ──▶ ...    │
  └ piece ────────────────────────────────────────────────────────┘
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `eager` | nothing is compiled | baseline, 1.79 ms | every operation is a call, and a pass over memory |
| `opaque` | the step is compiled, the function is foreign | 0.61x: *slower* where kernels are short | two pieces a layer, each with guards and calls |
| `custom_op` | the function is a `torch.library.custom_op` with a fake kernel | 1.5x over `opaque`; 0.93x, inconclusive | one graph; but each call goes through Python |
| `traced` | the compiler sees the torch code inside | 17x | one graph, and all is fused |

## What the compiler cannot see

Dynamo traces Python and torch's own operators. A function of a C++ extension is neither, nor one
that hands pointers to another library. There the graph ends: Python calls the function, and what
follows is another graph. A loop around it is not compiled, so each layer is, alone, in two pieces.
`opaque` marks the function with `torch.compiler.disable`. That has the same effect as a function
bound by pybind11 (`load_inline`), which g++ would compile for tens of seconds.

## What the registration says

- The types, by annotations, and what is written to, by `mutates_args`.
- The shape and dtype of the result, by `register_fake`. It computes nothing.

So the compiler plans memory and order around a call that it cannot open. In C++ `TORCH_LIBRARY`
does the same. `torch.library.opcheck` tests it: a wrong fake kernel may give wrong results without
an error. Training needs `register_autograd` too.

## Where it does not help

An operator stays closed. Its kernels are launched one by one, and no neighbour is fused into it. A
call of it passes the dispatcher and Python, in eager mode too, so that `custom_op` may lose to
`eager`. Where kernels run for milliseconds, neither pieces nor calls weigh anything. If the
operation can be written in torch, `traced` is the answer.

## What the source says

The profiling tutorial builds a C++ extension, and names the operator as the remedy for its graph
break, without a figure. Pieces are counted here as in `graph_breaks`.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    params={"layers": 16, "rows": 64, "width": 1024},
    cpu={"layers": 4, "rows": 16, "width": 256},
    smoke={"layers": 2, "rows": 4, "width": 32},
    sweep={"rows": (16, 64, 256, 1024, 4096)},
    ladder=True,
    item="layer",
    claim="profiling tutorial: a custom operator keeps a C++ extension in the graph, without a figure",
    no_effect_reason="kernels far longer than the calls between them",
    terms=(
        "torch.library",
        "C++ extension",
        "graph break",
        "register_fake",
        "load_inline",
        "pybind",
    ),
)
_EPSILON = 1e-6


def _normalized(data: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Root mean square normalization."""
    return data * torch.rsqrt(data.square().mean(dim=-1, keepdim=True) + _EPSILON) * weight


_foreign = torch.compiler.disable(_normalized)
_registered = torch.library.custom_op("gpulab_lesson::normalized", _normalized, mutates_args=())


@_registered.register_fake
def _(data, weight):
    return torch.empty_like(data)


@scenario.variant
def eager(lab, layers, rows, width):
    """The layers as they are, not compiled."""
    return _work(lab, layers, rows, width, _through_torch)


@scenario.variant(needs=("compiler",))
def opaque(lab, layers, rows, width):
    """The step is compiled, and breaks at each call of the function: the compiler may not look
    inside.
    """
    return _work(lab, layers, rows, width, _through_foreign, compiled=True)


@scenario.variant(needs=("compiler",))
def custom_op(lab, layers, rows, width):
    """The same function registered as an operator: the compiler still does not look inside, and one
    graph holds all calls.
    """
    return _work(lab, layers, rows, width, _through_operator, compiled=True)


@scenario.variant(needs=("compiler",))
def traced(lab, layers, rows, width):
    """The same function as plain torch, which the compiler traces and fuses with its neighbours."""
    return _work(lab, layers, rows, width, _through_torch, compiled=True)


# A function each: where a graph breaks in a loop, the compiler gives up this code for good.
def _through_torch(data, scales, shifts):
    for scale, shift in zip(scales, shifts, strict=True):
        data = _layer(data, scale, shift, _normalized)
    return data


def _through_foreign(data, scales, shifts):
    for scale, shift in zip(scales, shifts, strict=True):
        data = _layer(data, scale, shift, _foreign)
    return data


def _through_operator(data, scales, shifts):
    for scale, shift in zip(scales, shifts, strict=True):
        data = _layer(data, scale, shift, _registered)
    return data


def _layer(data, scale, shift, normalized):
    ahead = torch.nn.functional.silu(data * scale + shift)
    return data + torch.tanh(normalized(ahead, scale))


def _work(lab, layers, rows, width, function, compiled=False):
    data = torch.randn(rows, width, device=lab.device)
    scales = [torch.rand(width, device=lab.device) + 0.5 for _ in range(layers)]
    shifts = [torch.randn(width, device=lab.device) / 4 for _ in range(layers)]
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
