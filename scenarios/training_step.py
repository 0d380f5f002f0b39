"""Training step: each fix alone, then those that pay together; gains do not multiply.

A step copies a batch to the device, converts it, and trains a perceptron with AdamW. A fix speeds
up only its own share of the step (Amdahl's law): another fix cannot save that time again, and what
is left becomes a larger share. So together the fixes may gain less or more than the product of
their single gains: measure again after every change.

`all_together` takes the fixes that suit the device: a CPU has no graph, no pinned memory, and not
always bf16. On an H200 (our own measurement, per sample) `larger_batch` alone gained 1.8x,
`fused_optimizer` 1.3x, `bf16` 1.1x and `graphed` 1.0x (product: 2.5x), all together 9.8x. Where
host and device overlap, a step takes the longer of the two, and shortening one shows nothing until
the other is short as well. A graph alone saves launches that long fp32 kernels hide. With bf16
alone matrix products (matmuls) are short, but the step then waits for launches, which autocast
makes more (91 operations for 68); in a graph those casts are part of 1.5 ms for four times the
samples. Those after `all_together` gained nothing or less (0.9 to 1.0x): buffers, as the allocator
keeps blocks; page-locked memory, as the copy is short and a block of one step has no next step for
the host to run ahead to; the compiler, as matmuls and the update take most of the time. Gradients
and what the update adds are checked. The larger batch repeats its samples, so its mean gradient is
the same; training needs another learning rate.
"""

from itertools import chain, pairwise

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    params={"batch": 256, "width": 1024, "hidden": 4096, "layers": 4},
    cpu={"batch": 32, "width": 256, "hidden": 512, "layers": 2},
    smoke={"batch": 4, "width": 32, "hidden": 32, "layers": 1},
    per="item",
    item="sample",
    claim="performance basics: 5-10x combined; our own measurement: 10x on an H200",
    terms=("end to end", "training loop"),
)
_CLASSES = 16


@scenario.variant
def naive(lab, batch, width, hidden, layers):
    """Fresh tensors, fp32, eager, AdamW as torch picks it: foreach on a GPU, a loop on a CPU."""
    return _training(lab, batch, width, hidden, layers, set())


@scenario.variant
def larger_batch(lab, batch, width, hidden, layers):
    """Four times the samples in a step."""
    return _training(lab, batch, width, hidden, layers, {"larger"})


@scenario.variant
def bf16(lab, batch, width, hidden, layers):
    """Autocast: matmuls in bf16; parameters, gradients and the update stay in fp32."""
    if not _computes_in_bf16(lab):
        lab.skip("no bf16 instructions here: it would be slower than fp32")
    return _training(lab, batch, width, hidden, layers, {"half"})


@scenario.variant
def fused_optimizer(lab, batch, width, hidden, layers):
    """AdamW updates each tensor in one pass."""
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
    """The batch is copied and converted into buffers that exist."""
    return _training(lab, batch, width, hidden, layers, {"buffers"})


@scenario.variant(needs=("cuda",))
def pinned(lab, batch, width, hidden, layers):
    """The batch lies in page-locked memory, and the host does not wait for its copy."""
    return _training(lab, batch, width, hidden, layers, {"pinned"})


@scenario.variant(needs=("compiler",))
def compiled(lab, batch, width, hidden, layers):
    """torch.compile of the model, forward and backward."""
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
