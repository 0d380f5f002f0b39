"""Batched matmul: one call for many small products.

**In short:** a loop over small products pays for every launch and leaves most of the GPU idle; one batched call ends both.

```text
         time ───────────────────────────────▶
loop     ▸█ ▸█ ▸█ ▸█ ▸█ ▸█ ▸█ ... 40 launches    8 SMs busy
graphed  ▸███████ ... 40 kernels, 1 launch       8 SMs busy
bmm      ▸█
          █   1 kernel, 1 launch: the tiles      nearly all
          █   of all 40 side by side             SMs busy
          █
         ▸ a launch by the host     █ 8 SMs at work
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `loop` | `torch.mm` for each of the 40 products | baseline, 0.43 to 0.74 ms by its host | every call costs Python, the dispatcher and a launch |
| `graphed` | the same kernels, started by one launch | 1.6x to 2.7x, 0.27 ms | saves the launches; kernels still run one after the other |
| `bmm` | one `torch.bmm` for all 40 | another 15x to 23x, 12 to 18 us | one kernel has tiles for nearly all SMs |

## Two costs, on the host and on the device

The host is the CPU thread that runs Python. Every call costs Python, PyTorch's dispatcher (which
selects the kernel, the function that the GPU runs) and a kernel launch, whatever it computes.

The device runs a kernel as tiles. A matmul of 32x256 by 256x256 has

    (32 / 32) * (256 / 32) = 8 tiles of 32x32

which keep 8 streaming multiprocessors (SMs) busy, and leave more than a hundred idle on a large
GPU. The next matmul waits, because the kernels of one stream (one queue) run one after the other.

## How the variants separate them

`graphed` records (*captures*) the loop in a CUDA graph: what it gains over `loop` is the launches.
What `bmm` gains over `graphed` is a full device. So a graph, or a faster host, is no substitute for
one large operation. Compare each variant with the one above it, and look at *SM %*, the share of
SMs that are busy (GPU only).

## Where it does not help

One call cannot be faster than one matmul, so both gains together are at most the number of
products:

    speedup <= about 40

They shrink as each matmul grows. Where one matmul fills the device by itself, the loop is as fast:
try `--set n=1024` and larger. On a CPU one matmul keeps its thread busy, and only the cost of the
calls can be saved.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    roof="matrix",
    params={"batch": 40, "m": 32, "k": 256, "n": 256},
    cpu={"m": 16, "k": 16, "n": 16},
    smoke={"batch": 8, "m": 4, "k": 16, "n": 16},
    sweep={"n": (16, 32, 64, 128, 256, 512)},
    ladder=True,
    item="multiply-add",
    claim="performance basics: 31x; quick-start guide: 20-40x",
    terms=("gemm", "bmm", "batching", "launch overhead"),
)


@scenario.variant
def loop(lab, batch, m, k, n):
    """One torch.mm for each matmul of the batch."""
    left, right, out = _operands(lab, batch, m, k, n)
    return _work(_each(left, right, out), left, right, out)


@scenario.variant(needs=("cuda",))
def graphed(lab, batch, m, k, n):
    """The same loop, recorded once and started by one launch."""
    left, right, out = _operands(lab, batch, m, k, n)
    return _work(_captured(_each(left, right, out)), left, right, out)


@scenario.variant
def bmm(lab, batch, m, k, n):
    """One torch.bmm for the whole batch."""
    left, right, out = _operands(lab, batch, m, k, n)
    return _work(lambda: torch.bmm(left, right, out=out), left, right, out)


def _operands(lab, batch, m, k, n):
    left = torch.randn(batch, m, k, device=lab.device)
    right = torch.randn(batch, k, n, device=lab.device)
    return left, right, torch.empty(batch, m, n, device=lab.device)


def _each(left, right, out):
    products = list(zip(left, right, out, strict=True))

    def step():
        for a, b, c in products:
            torch.mm(a, b, out=c)

    return step


def _captured(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()  # the library sets itself up, which a capture does not allow
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _work(step, left, right, out):
    batch, m, k = left.shape
    return Work(
        step,
        flops=2 * batch * m * k * out.shape[2],
        bytes=left.nbytes + right.nbytes + out.nbytes,
        dtype="fp32",
        items=batch * m * k * out.shape[2],
        inputs=(left, right),
        output=out,
    )
