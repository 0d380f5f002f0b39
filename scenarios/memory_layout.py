"""Memory layout: read memory in the order in which it lies.

A transpose moves nothing: it swaps the strides, and whoever reads the view along its rows now jumps from
cache line to cache line, using four bytes of each. The step takes the norm of every row. Over a transposed
view most of each line that is fetched is thrown away; `contiguous()` pays for that once, in a copy, and
then reads in order; made once, outside the loop, the copy costs nothing at all.

It is no help where the operation reorders its loops to suit the strides: torch does so for sums and for
most element-wise work, and on a GPU for norms as well. And a copy made on every step is only worth it where
what follows reads the data more than once, or as slowly as here. Measure before writing `.contiguous()`.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="device memory",
    params={"n": 16384},
    cpu={"n": 2048},
    smoke={"n": 256},
    sweep={"n": (256, 512, 1024, 2048)},
    ladder=True,
    claim="a contiguous copy makes strided reads several times faster",
)


@scenario.variant
def transposed_view(lab, n):
    """Norms of the rows of a transposed view: every read jumps."""
    view = _view(lab, n)
    return _norms(lab, lambda: view, view)


@scenario.variant
def contiguous_each_step(lab, n):
    """The view is copied into row order on every step."""
    view = _view(lab, n)
    return _norms(lab, view.contiguous, view)


@scenario.variant
def contiguous_once(lab, n):
    """The copy is made once, before the steps."""
    rows = _view(lab, n).contiguous()
    return _norms(lab, lambda: rows, rows)


def _view(lab, n):
    return torch.rand(n, n, device=lab.device).t()


def _norms(lab, rows, data):
    out = torch.empty(data.shape[0], device=lab.device)
    return Work(
        lambda: torch.linalg.vector_norm(rows(), dim=1, out=out),
        bytes=data.nbytes + out.nbytes,
        flops=2 * data.numel(),
        dtype="fp32",
        items=data.numel(),
        inputs=data,
    )
