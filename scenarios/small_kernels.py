"""Small kernels: do a chain of element-wise operations as one kernel, not as dozens.

**In short:** one fused kernel saves launches where tensors are small, and memory traffic where they are large.

```text
a chain of 4 operations, time ──▶              not to scale

           1 MiB: the device waits     256 MiB: it never waits
eager      ▸█  ▸█  ▸█  ▸█              ▸████████████████████
graphed    ▸████                       ▸████████████████████
compiled   ▸█                          ▸█████
in_triton  ▸█                          ▸█████
           ▸ launch by the host        █ the device at work
```

| variant | what changes | expected (H100, `mib=256 repeats=1`) | why |
|---|---|---|---|
| `eager` | a kernel for each operation | baseline, 849 us | each reads and writes the whole tensor |
| `graphed` | the same kernels by one launch | the *same*: launches are hidden; faster on 1 MiB | saves launches alone |
| `compiled` | `torch.compile` of the chain, one kernel | 4.41x, 193 us; on a CPU at most 4x | 2 passes over memory, not 8 |
| `in_triton` | the same kernel by hand | 4.46x, 190 us | as `compiled` |

## Two costs

Bias, ReLU, scale and shift are four operations, here eight times in a row. Each of the 32 kernels
reads the whole tensor and writes it back:

    32 kernels: 64 passes over memory      1 kernel: 2 passes

On 1 MiB a GPU finishes a kernel in a microsecond or two. The host needs longer to launch it, and
the device waits. `graphed` records the kernels in a CUDA graph and starts them by one launch: what
it gains is the launches. One kernel also passes nothing through memory, or the L2, in between.

## Which cost counts

Small tensors wait for launches, and stay in the L2 cache between operations. Larger than the L2,
they hide launches behind longer kernels, and the gain is that of the traffic. `--sweep` goes from 1
to 256 MiB. On a CPU a call costs little compared with the data: traffic alone, here of four
operations.

The Triton guide has 3x less traffic, of another chain (exp, sum, scale). Here it is

    8 passes / 2 = 4x for four operations, 64 / 2 = 32x for the default

The table is of four operations, as it was measured. The gain is above 4x because the fused kernel
is also nearer to the memory's roof: 92 % of it in Triton, `eager` 83 %. That is no rule. Fewer bytes
mean more FLOPs for each byte, where the roof is higher: a faster variant may be further below it.

## Where it does not help

- A chain that runs only a few times: compiling takes seconds, once for each shape. It is in the
  build and the first step, which stand beside the result. Divide it by what a step saves: in the run
  of the table the first step took 3.06 s, which 4,700 steps pay.
- A very small one: guards (checks that shapes and types are as compiled) and the wrapper run at
  every call. On 4 KiB and a CPU that took 15 us a call, the four operations 4 us (our measurement).
  Look at `--set repeats=1`.
- Next to one expensive operation, such as a matmul.

`in_triton` is a dozen lines that do what the compiler does, and need not be faster.
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
    """A kernel for each operation, each over the whole tensor: the baseline."""
    return _work(lab, mib, repeats, lambda *tensors: _chain(*tensors, repeats), passes=8 * repeats)


@scenario.variant(needs=("cuda",))
def graphed(lab, mib, repeats):
    """The kernels of `eager`, recorded once and started by one launch."""
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
    """The function of `eager`, compiled into one kernel."""
    chain = torch.compile(_chain)
    return _work(lab, mib, repeats, lambda *tensors: chain(*tensors, repeats), passes=2)


@scenario.variant(needs=("cuda", "triton"))
def in_triton(lab, mib, repeats):
    """The chain as one Triton kernel, written by hand in place of the compiler's."""

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
