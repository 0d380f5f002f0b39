"""Training step: the usual fixes, each alone and all together; the gains do not multiply.

A batch arrives as bytes on the host, is converted, goes forward and backward through a perceptron, and AdamW updates
it. Each variant changes one thing of the naive step. A fix speeds up only its own share of the step: what another fix
has removed cannot be removed twice, and what the others leave standing is a larger share than it was. So the product
of the single gains is not what all of them bring; it may be more or less. That gap is Amdahl's law, and the reason to
measure again after every change.

Which fix pays depends on what the step waits for: launches (a larger batch, a graph, the compiler), arithmetic (bf16),
or memory. The optimizer's traffic grows with the parameters alone, and a larger batch spreads it over more samples.
Buffers gain next to nothing where the allocator keeps its blocks, page-locked memory nothing until copies are long.
On a CPU bf16 pays only with instructions for it, and the compiler nothing for a model that is nearly all products.

Every gradient is compared with the naive one, within what the types can hold. The larger batch holds the same samples
several times over, so its mean gradient is the same, and its time is compared per sample. In training a larger batch
wants another learning rate.
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
    claim="5-10x combined",
)
_CLASSES, _TIMES = 16, 4


@scenario.variant
def naive(lab, batch, width, hidden, layers):
    """Fresh tensors, fp32, eager, torch's default optimizer loop."""
    return _training(lab, batch, width, hidden, layers, set())


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


@scenario.variant(needs=("cuda",), against="preallocated")
def graphed(lab, batch, width, hidden, layers):
    """Forward, backward and update are one CUDA graph, which works on those buffers by its nature."""
    return _training(lab, batch, width, hidden, layers, {"buffers", "graphed"})


@scenario.variant
def larger_batch(lab, batch, width, hidden, layers):
    """Four times the samples in a step."""
    return _training(lab, batch, width, hidden, layers, {"larger"})


@scenario.variant
def bf16(lab, batch, width, hidden, layers):
    """Autocast: products in bf16; parameters, gradients and the update stay in fp32."""
    return _training(lab, batch, width, hidden, layers, {"half"})


@scenario.variant
def fused_optimizer(lab, batch, width, hidden, layers):
    """AdamW updates each tensor in one pass."""
    return _training(lab, batch, width, hidden, layers, {"fused"})


@scenario.variant(needs=("compiler",))
def all_together(lab, batch, width, hidden, layers):
    """Every fix that this device has, at once."""
    of_a_gpu = {"pinned", "graphed"} if lab.device.type == "cuda" else set()
    fixes = {"buffers", "compiled", "larger", "half", "fused"} | of_a_gpu
    return _training(lab, batch, width, hidden, layers, fixes)


def _training(lab, batch, width, hidden, layers, fixes):
    times, half = _TIMES if "larger" in fixes else 1, "half" in fixes
    samples = torch.randint(0, 256, (batch, width), dtype=torch.uint8).repeat(times, 1)
    labels = torch.randint(0, _CLASSES, (batch,)).repeat(times)
    host = [tensor.pin_memory() if "pinned" in fixes else tensor for tensor in (samples, labels)]
    load = _loader(lab, host, "buffers" in fixes, "pinned" in fixes)
    blocks = [(torch.nn.Linear(*pair), torch.nn.GELU()) for pair in pairwise([width, *[hidden] * layers])]
    model = torch.nn.Sequential(*chain(*blocks), torch.nn.Linear(hidden, _CLASSES)).to(lab.device)
    forward = torch.compile(model) if "compiled" in fixes else model
    optimizer = torch.optim.AdamW(model.parameters(), capturable="graphed" in fixes, fused="fused" in fixes or None)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
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

    weights = sum(weight.numel() for weight in model.parameters() if weight.dim() == 2)
    return Work(
        step,
        flops=batch * times * (6 * weights - 2 * width * hidden),  # nobody asks for the input's gradient
        dtype="bf16" if half else "fp32",
        items=batch * times,
        inputs=host,
        state=(model, optimizer),
        output=lambda: [parameter.grad for parameter in model.parameters()],
        tolerance=5e-2 if half else None,  # a gradient is a sum of many products in bf16
    )


def _loader(lab, host, buffers, pinned):
    """A function that brings the batch to the device and converts it."""
    on_device = [torch.empty_like(tensor, device=lab.device) for tensor in host]
    rows = torch.empty(host[0].shape, device=lab.device)

    def load():
        if not buffers:
            samples, labels = (tensor.to(lab.device, non_blocking=pinned) for tensor in host)
            return samples / 255, labels
        samples, labels = (to.copy_(source, non_blocking=pinned) for to, source in zip(on_device, host, strict=True))
        return torch.div(samples, 255, out=rows), labels

    return load


def _captured(update, loaded, model, optimizer):
    """The update as a graph; what was changed on the way there is put back."""
    state = [*model.parameters(), *chain(*(moments.values() for moments in optimizer.state.values()))]
    saved, side = [tensor.detach().clone() for tensor in state], torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries and the compiler set themselves up, which a capture does not allow
            update(*loaded)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update(*loaded)
    with torch.no_grad():
        torch._foreach_copy_(state, saved)
    return lambda *_: graph.replay()
