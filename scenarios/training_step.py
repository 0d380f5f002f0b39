"""Training step: each fix alone, then those that pay together; gains do not multiply.

**In short:** a fix saves at most the share of the step that it touches, and changes the share of every other fix.

```text
one step of naive on an H200, 3.79 ms: a cell is 0.1 ms

                matmuls, 51 %      AdamW, 31 % idle rest
                ███████████████████▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒····
bf16            ├── cheaper ──────┤
fused_optimizer                    ├─ cheaper ┤
graphed                                        ├─┤ 8.5 %
larger_batch    ├ nearer the roof ┤├ once for 4x ┤

idle: the device waits for launches     4x: four times the samples
```

| variant | what changes | expected (H200, per sample) | why |
|---|---|---|---|
| `naive` | fresh tensors, fp32, eager | baseline, 14.8 us | matmuls (matrix products) take half of it |
| `larger_batch` | 4 times the samples in a step | 1.8x | AdamW and launches, 40 %, come once for 4 times the samples; larger matmuls run closer to the roof |
| `bf16` | matmuls under autocast | inconclusive, 1.1x | matmuls are 10x faster; then 34 % of the step waits for launches, and casts are added |
| `fused_optimizer` | AdamW in one pass over each tensor | 1.3x | its 31 % become 2.7x faster |
| `graphed` | one launch for forward, backward and update | inconclusive, 1.0x | touches 8.5 %: long fp32 kernels hide most launches |
| `all_together` | the fixes above that the device has | 9.8x, 1.53 ms for 4 times the samples | each works on what the others left |
| `preallocated` | copies into buffers that exist | inconclusive, 1.0x | the allocator keeps blocks |
| `pinned` | page-locked memory, a copy without waiting | inconclusive, 1.0x | the copy is short, and where a timed block is one step, the host has no next one to run ahead to |
| `compiled` | `torch.compile` of the model | 0.9x, doubtful | matmuls and update, most of the time, stay as they are |

## Amdahl's law: what one fix can gain

A fix touches the share p of a step, and makes it s times as fast:

    speedup = 1 / (1 - p + p / s)  <=  1 / (1 - p)
    fused_optimizer: p = 0.31, s = 2.7: 1 / (0.69 + 0.31 / 2.7) = 1.24

1.27x was measured. A graph, with p = 0.085, can gain 1.09x at most.

## Why the product is not the total

One fix saves the share a of the step, another one, elsewhere, the share b:

    product:  1 / ((1 - a) * (1 - b)) = 1 / (1 - a - b + a * b)
    together: 1 / (1 - a - b)

So together they gain more: the first fix makes the second one's share larger. If both
save the same time, they gain less, since it can be saved only once. On the H200:

    product:  1.78 * 1.08 * 1.27 * 1.02 = 2.5x
    together: 9.8x

The gap is that large because fixes also remove what blocked others. For `bf16` alone the law says

    1 / (0.49 + 0.51 / 10) = 1.85x

and 1.08x was measured. Host and device overlap, and a step takes the longer of the two. Autocast
shortens the device's matmuls and gives the host more to launch (91 operations for 68). Now the
device waits for the host. With a graph and a larger batch that wait is gone, and `bf16` pays.

So measure again after every change: another share is the largest now. Of `all_together` AdamW takes
28 %, matmuls about 30 %, and 6 % waits for launches. It is at 27 % of the roof of bf16, `naive` at
36 % of that of fp32.

## What is compared

Gradients and what the update adds are checked. `larger_batch` repeats its samples, so its mean
gradient is the same; real training needs another learning rate. A CPU has no graph, no pinned
memory, and not always bf16: `all_together` leaves those out.

*Inconclusive*: the interval holds 1x, and is too wide for *same*. *Doubtful* here: the control's
interval is wider than the effect.

The performance basics claim 5-10x combined. What is possible depends on what the first step wastes.
"""

from itertools import chain, pairwise

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    params={"batch": 256, "width": 1024, "hidden": 4096, "layers": 4},
    cpu={"batch": 32, "width": 256, "hidden": 512, "layers": 1},
    smoke={"batch": 4, "width": 32, "hidden": 32, "layers": 1},
    per="item",
    item="sample",
    claim="performance basics: 5-10x combined; our own measurement: 10x on an H200",
    terms=("end to end", "training loop", "amdahl", "bottleneck", "adamw"),
)
_CLASSES = 16


@scenario.variant
def naive(lab, batch, width, hidden, layers):
    """Fresh tensors, fp32, eager, AdamW as torch picks it: foreach on a GPU, a loop on a CPU."""
    return _training(lab, batch, width, hidden, layers, set())


@scenario.variant
def larger_batch(lab, batch, width, hidden, layers):
    """Four times the samples in a step of `naive`; the update and the launches come once for them."""
    return _training(lab, batch, width, hidden, layers, {"larger"})


@scenario.variant
def bf16(lab, batch, width, hidden, layers):
    """`naive` under autocast: matmuls in bf16; parameters, gradients and update stay in fp32."""
    if not _computes_in_bf16(lab):
        lab.skip("no bf16 instructions here: it would be slower than fp32")
    return _training(lab, batch, width, hidden, layers, {"half"})


@scenario.variant
def fused_optimizer(lab, batch, width, hidden, layers):
    """`naive` with an AdamW that updates each tensor in one pass, not in several kernels."""
    return _training(lab, batch, width, hidden, layers, {"fused"})


@scenario.variant(needs=("cuda",))
def graphed(lab, batch, width, hidden, layers):
    """Forward, backward and update are one CUDA graph, which by its nature works on buffers."""
    return _training(lab, batch, width, hidden, layers, {"buffers", "graphed"})


@scenario.variant
def all_together(lab, batch, width, hidden, layers):
    """The fixes above that this device has, at once."""
    extra = ["half"] * _computes_in_bf16(lab) + ["buffers", "graphed"] * (lab.device.type == "cuda")
    return _training(lab, batch, width, hidden, layers, {"larger", "fused", *extra})


@scenario.variant
def preallocated(lab, batch, width, hidden, layers):
    """`naive`, with the batch copied and converted into buffers that exist."""
    return _training(lab, batch, width, hidden, layers, {"buffers"})


@scenario.variant(needs=("cuda",))
def pinned(lab, batch, width, hidden, layers):
    """`naive` with the batch in page-locked memory, so that the host does not wait for its copy."""
    return _training(lab, batch, width, hidden, layers, {"pinned"})


@scenario.variant(needs=("compiler",))
def compiled(lab, batch, width, hidden, layers):
    """`naive` with torch.compile of the model, forward and backward."""
    return _training(lab, batch, width, hidden, layers, {"compiled"})


def _computes_in_bf16(lab):
    if lab.device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def _training(lab, batch, width, hidden, layers, fixes):
    times, half = 4 if "larger" in fixes else 1, "half" in fixes
    samples = torch.randint(0, 256, (batch, width), dtype=torch.uint8).repeat(times, 1)
    labels = torch.randint(0, _CLASSES, (batch,)).repeat(times)
    host = [tensor.pin_memory() if "pinned" in fixes else tensor for tensor in (samples, labels)]
    load = _loader(lab, host, "buffers" in fixes, "pinned" in fixes)
    blocks = [
        (torch.nn.Linear(*pair), torch.nn.GELU()) for pair in pairwise([width, *[hidden] * layers])
    ]
    model = torch.nn.Sequential(*chain(*blocks), torch.nn.Linear(hidden, _CLASSES)).to(lab.device)
    forward = torch.compile(model) if "compiled" in fixes else model
    optimizer = torch.optim.AdamW(
        model.parameters(), capturable="graphed" in fixes, fused="fused" in fixes or None
    )
    # far from zero: from nothing Adam goes by a gradient's sign, be it noise
    for parameter in model.parameters():
        parameter.grad = torch.randint_like(parameter, 2) / 50 - 0.01
    optimizer.step()  # makes the moments, which are part of the state

    def update(rows, wanted):
        optimizer.zero_grad()
        with torch.autocast(lab.device.type, torch.bfloat16, enabled=half):
            loss = torch.nn.functional.cross_entropy(forward(rows), wanted)
        loss.backward()
        optimizer.step()

    run = _captured(update, load(), model, optimizer) if "graphed" in fixes else update

    def step():
        with lab.phase("copy"):
            loaded = load()
        with lab.useful():
            run(*loaded)

    per_sample = 6 * sum(weight.numel() for weight in model.parameters() if weight.dim() == 2)
    return Work(
        step,
        # nobody asks for the input's gradient
        flops=batch * times * (per_sample - 2 * width * hidden),
        dtype="bf16" if half else "fp32",
        items=batch * times,
        inputs=host,
        state=(model, optimizer),
        output=lambda: [(parameter.grad, parameter) for parameter in model.parameters()],
        tolerance=5e-2 if half else None,  # a gradient is a sum of many products in bf16
    )


def _loader(lab, host, buffers, pinned):
    """A function that brings the batch to the device and converts it."""
    places = [torch.empty_like(tensor, device=lab.device) for tensor in host]
    rows = torch.empty(host[0].shape, device=lab.device)

    def load():
        if buffers:
            samples, labels = (to.copy_(source) for to, source in zip(places, host, strict=True))
            return torch.div(samples, 255, out=rows), labels
        samples, labels = (tensor.to(lab.device, non_blocking=pinned) for tensor in host)
        return samples / 255, labels

    return load


def _captured(update, loaded, model, optimizer):
    """The update as a graph; what was changed on the way there is put back."""
    moments = (state.values() for state in optimizer.state.values())
    state = [tensor.detach() for tensor in chain(model.parameters(), *moments)]
    saved, side = [tensor.clone() for tensor in state], torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries set themselves up, which a capture does not allow
            update(*loaded)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph := torch.cuda.CUDAGraph()):
        update(*loaded)
    torch._foreach_copy_(state, saved)
    return lambda *_: graph.replay()
