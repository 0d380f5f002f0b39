"""Sync every step: read the loss now and then, not in every iteration.

A GPU works through a queue (a *stream*) of kernels, and Python runs ahead of it: while the long
kernels of one iteration compute, those of the next are launched. `loss.item()` needs a number on
the host, so it waits until the queue is empty, and only then can the next iteration be launched.
Kept on the device and read once at the end, the losses cost one wait for all iterations.
`print(loss)`, `if loss > x:`, `.cpu()` and `.tolist()` wait as well.

Each iteration here begins with short kernels (rows are normalized step by step) and ends with two
matrix products (matmuls). While the matmuls of one iteration run, launching the short kernels of
the next costs nothing; after a wait the device idles while each of them is launched. So a wait
costs the way to the host and back, and the launches up to the first long kernel.

There is little to gain where the kernels run far longer than that, and where the host is slower
than the device all the time: then nothing runs ahead, and a wait costs no more than the copy of the
number and the way back, some 13 us (1.14x, an H100 with batch=256, width=512). Fewer launches help
there (a CUDA graph, a compiler), and afterwards the wait may matter. To watch a loss, every
hundredth step is enough.

On a CPU there is no effect, and *same* is the right answer: every operation is finished when its
call returns, so nothing is queued, nothing runs ahead, and `.item()` reads four bytes.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    params={"iterations": 100, "batch": 1024, "width": 1024},
    cpu={"iterations": 20, "batch": 128, "width": 256},
    smoke={"iterations": 10, "batch": 4, "width": 16},
    item="iteration",
    claim="bottleneck guide: the device idles at every .item()",
    no_effect_reason=(
        "on a CPU nothing is queued, so there is nothing to wait for; on a GPU the kernels "
        "outlast their launches, or the host never ran ahead"
    ),
    terms=(".item()", "synchronization"),
)


@scenario.variant
def item_each(lab, iterations, batch, width):
    """`loss.item()` in every iteration: the host waits each time."""

    def read(loss):
        with lab.phase("sync"):
            return loss.item()

    return _iterations(lab, iterations, batch, width, read, torch.tensor)


@scenario.variant
def deferred(lab, iterations, batch, width):
    """The losses stay on the device, and are read once at the end."""

    def read_all(losses):
        with lab.phase("sync"):
            return torch.stack(losses).cpu()

    return _iterations(lab, iterations, batch, width, lambda loss: loss, read_all)


def _iterations(lab, iterations, batch, width, keep, collect):
    data = torch.randn(iterations, batch, width, device=lab.device)
    up, down = (torch.randn(width, width, device=lab.device) / width**0.5 for _ in range(2))
    # Buffers, so that keeping a loss does not change where the next iteration's tensors lie.
    normal, between, out = (torch.empty(batch, width, device=lab.device) for _ in range(3))

    @torch.no_grad()
    def step():
        losses = []
        for rows in data:
            with lab.useful():
                torch.sub(rows, rows.mean(1, keepdim=True), out=normal)
                deviation = (
                    torch.square(normal, out=between).mean(1, keepdim=True).add_(1e-5).sqrt_()
                )
                normal.div_(deviation).clamp_(-3, 3)
                torch.mm(normal, up, out=between).relu_()
                loss = torch.mm(between, down, out=out).sub_(rows).square_().mean()
            losses.append(keep(loss))
        return collect(losses)

    return Work(
        step,
        flops=4 * data.numel() * width,
        dtype="fp32",
        items=iterations,
        inputs=(data, up, down),
    )
