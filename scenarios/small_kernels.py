"""Small kernels: do a chain of element-wise operations in one pass over the data.

Bias, ReLU, scale and shift are four operations, and four times the whole tensor is read from memory and written back,
for one addition or multiplication an element. Fused into one kernel it is read once and written once: a quarter of the
traffic, and one launch instead of four. `torch.compile` finds such chains and writes the kernel; in Triton one writes
it oneself, a dozen lines here that do the same and need not be any faster.

The gain follows the traffic, up to 4x here, where the tensor is larger than the caches. One that stays in a cache
between the operations is read from there: on a GPU only the launches are left to save then, on a CPU less than the
traffic promises. Nothing is gained where one expensive operation, such as a product of matrices, takes most of the
time.

Compiling costs seconds, once for each shape: they are in the build and the first step, beside the result and not in
it. A chain that runs a few times only never earns them back.
"""

import torch

from gpulab import MiB, Scenario, Work

try:
    import triton
    import triton.language as tl
except ImportError:  # the variant says that it needs it
    triton = None

scenario = Scenario(
    topic="launch and host overhead",
    roof="device memory",
    params={"mib": 256},
    cpu={"mib": 24},
    smoke={"mib": 1},
    claim="3x less traffic",
)
_COLUMNS, _BLOCK = 1024, 1024


@scenario.variant
def eager(lab, mib):
    """Four operations, each over the whole tensor."""
    return _work(lab, mib, _chain, passes=8)


@scenario.variant(needs=("compiler",))
def compiled(lab, mib):
    """The same function, compiled into one loop."""
    return _work(lab, mib, torch.compile(_chain), passes=2)


@scenario.variant(needs=("cuda", "triton"))
def in_triton(lab, mib):
    """The kernel written by hand."""

    def chain(data, bias, scale, shift):
        out = torch.empty_like(data)
        count = data.numel()
        _kernel[(triton.cdiv(count, _BLOCK),)](data, bias, scale, shift, out, count, bias.numel(), BLOCK=_BLOCK)
        return out

    return _work(lab, mib, chain, passes=2)


def _chain(data, bias, scale, shift):
    return torch.relu(data + bias) * scale + shift


if triton is not None:

    @triton.jit
    def _kernel(data, bias, scale, shift, out, count, columns, BLOCK: tl.constexpr):  # noqa: N803
        """One program does one block of elements, from the load to the store."""
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside, column = place < count, place % columns
        value = tl.load(data + place, mask=inside) + tl.load(bias + column, mask=inside)
        value = tl.maximum(value, 0.0) * tl.load(scale + column, mask=inside)
        tl.store(out + place, value + tl.load(shift + column, mask=inside), mask=inside)


def _work(lab, mib, chain, passes):
    data = torch.randn(mib * MiB // 4 // _COLUMNS, _COLUMNS, device=lab.device)
    bias, scale, shift = (torch.randn(_COLUMNS, device=lab.device) for _ in range(3))

    def step():
        with lab.useful():
            return chain(data, bias, scale, shift)

    return Work(
        step,
        bytes=passes * data.nbytes,
        flops=4 * data.numel(),
        dtype="fp32",
        items=data.numel(),
        inputs=(data, bias, scale, shift),
    )
