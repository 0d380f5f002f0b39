"""Batched matmul: one call for many small products.

A loop over forty small matrix products (matmuls) loses time on a GPU for two reasons. The first is
the host, the CPU thread that runs Python: every call costs Python, PyTorch's dispatcher (which
selects the kernel, the function that the GPU runs) and a kernel launch, whatever it computes. The
second is the device: a matmul of 32x256 by 256x256 has 8 tiles of 32x32, which keep 8 streaming
multiprocessors (SMs) busy and leave more than a hundred idle on a large GPU. The next matmul waits
for it, because the kernels of one stream (one queue) run one after the other.

The three variants separate these two costs. `graphed` records (*captures*) the loop in a CUDA graph
and starts all forty kernels by one launch: what it gains over `loop` is the launches. `bmm` hands
all forty over in one call, and one kernel computes them: what it gains over `graphed` is a device
on which nearly all multiprocessors have a tile to do. Measured here on an H200: 428 us, 272 us and
11.8 us, so the saved launches are 1.6x, and products side by side are the other 23x. A graph, or a
faster host, is no substitute for one large operation.

The two gains together are at most 40x here, the number of matmuls: one call cannot be faster than
one matmul. They shrink as each matmul grows, and where one matmul fills the device by itself the
loop is as fast: try `--set n=1024` and larger. On a CPU one matmul keeps its thread busy, and only
the cost of the calls can be saved.

What to look at: the speedup of each variant over the one above it, and *SM %*, the share of SMs
that are busy (GPU only).
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
