"""Small kernels: do a chain of element-wise operations as one kernel, not as dozens.

Bias, ReLU, scale and shift are four operations, here eight times in a row: 32 kernels, each of
which reads the whole tensor, does one operation per element, and writes it back. On 1 MiB a GPU
finishes each in a microsecond or two, and the host needs longer than that to launch it: the device
waits. Two costs can be saved, launches and memory traffic, and the variants separate them.
`graphed` records the 32 kernels in a CUDA graph and starts them by one launch, so what it gains is
the launches. `compiled` and `in_triton` are one kernel: nothing is launched or passed through
memory in between.

Which of the two costs is larger depends on the size: `--sweep` goes from 1 to 256 MiB. Small
tensors wait for launches, and stay in the L2 cache between operations. Once they no longer fit into
it, launches are hidden behind longer kernels, `graphed` gains nothing any more, and the gain is
that of the traffic: 2 passes over memory in place of 64. On a CPU a call costs little compared with
the data, so there it is the traffic alone, here of four operations: at most 4x.

`torch.compile` finds such chains and writes the kernel; in Triton it is written by hand, a dozen
lines here that do the same and need not be any faster. Compiling takes seconds, once for each
shape: they are in the build and the first step, which stand beside the result and are no part of
it. A chain that runs only a few times never earns them back.

Calling compiled code is not free either: its guards (checks that shapes and types are those that
the code was compiled for) and its wrappers run on the host at every call. On 4 KiB and a CPU that
took 15 us a call where the four operations took 4 us (our own measurement), so for a chain as short
as that look at `--set repeats=1` first. Nothing is gained where one expensive operation, such as a
matrix product (matmul), takes most of the time.
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
    params={"mib": 1, "repeats": 8},
    cpu={"mib": 24, "repeats": 1},
    smoke={"mib": 1, "repeats": 1},
    sweep={"mib": (1, 4, 16, 64, 256)},
    ladder=True,
    item="element",
    claim="Triton guide: 3x less traffic, of another chain (exp, sum, scale)",
    terms=("launch overhead", "kernel fusion", "elementwise"),
)
_COLUMNS, _BLOCK = 1024, 1024


@scenario.variant
def eager(lab, mib, repeats):
    """Every operation is a kernel, each over the whole tensor."""
    return _work(lab, mib, repeats, lambda *tensors: _chain(*tensors, repeats), passes=8 * repeats)


@scenario.variant(needs=("cuda",))
def graphed(lab, mib, repeats):
    """The same kernels, recorded once and started by one launch."""
    return _work(
        lab,
        mib,
        repeats,
        lambda *tensors: _chain(*tensors, repeats),
        passes=8 * repeats,
        graph=True,
    )


@scenario.variant(needs=("compiler",))
def compiled(lab, mib, repeats):
    """The same function, compiled into one kernel."""
    chain = torch.compile(_chain)
    return _work(lab, mib, repeats, lambda *tensors: chain(*tensors, repeats), passes=2)


@scenario.variant(needs=("cuda", "triton"))
def in_triton(lab, mib, repeats):
    """The same chain as one Triton kernel, written by hand."""

    def chain(data, bias, scale, shift):
        out = torch.empty_like(data)
        count, columns = data.numel(), bias.numel()
        _kernel[(triton.cdiv(count, _BLOCK),)](
            data, bias, scale, shift, out, count, columns, repeats, BLOCK=_BLOCK
        )
        return out

    return _work(lab, mib, repeats, chain, passes=2)


def _chain(data, bias, scale, shift, repeats):
    for _ in range(repeats):
        data = torch.relu(data + bias) * scale + shift
    return data


if triton is not None:

    @triton.jit
    def _kernel(
        data, bias, scale, shift, out, count, columns, repeats: tl.constexpr, BLOCK: tl.constexpr
    ):
        """One program does one block of elements, from the load to the store."""
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside, column = place < count, place % columns
        value = tl.load(data + place, mask=inside)
        add, times = tl.load(bias + column, mask=inside), tl.load(scale + column, mask=inside)
        then = tl.load(shift + column, mask=inside)
        for _ in tl.static_range(repeats):
            value = tl.maximum(value + add, 0.0) * times + then
        tl.store(out + place, value, mask=inside)


def _work(lab, mib, repeats, chain, passes, graph=False):
    data = torch.randn(mib * MiB // 4 // _COLUMNS, _COLUMNS, device=lab.device)
    bias, scale, shift = (torch.randn(_COLUMNS, device=lab.device) / 10 for _ in range(3))
    scale += 1  # near 1, so that no value grows or fades as the chain repeats
    tensors = (data, bias, scale, shift)
    run = _captured(chain, tensors) if graph else chain

    def step():
        with lab.useful():
            return run(*tensors)

    return Work(
        step,
        bytes=passes * data.nbytes,
        flops=4 * repeats * data.numel(),
        dtype="fp32",
        items=data.numel(),
        inputs=tensors,
    )


def _captured(chain, tensors):
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        chain(*tensors)  # the first call, which a capture does not allow
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        out = chain(*tensors)

    def replay(*_):
        graph.replay()
        return out

    return replay
