"""Sync every step: read the loss now and then, not in every iteration.

**In short:** `loss.item()` waits until the queue of the GPU is empty, so the launches of the next iteration are not hidden.

```text
           time ───────────────────────────────────────────▶
item_each  host  ▸▸▸▸ waits ........ ▸▸▸▸ waits ........
           GPU   ▒ ▒ ▒ ▒ ██████████  ▒ ▒ ▒ ▒ ██████████
deferred   host  ▸▸▸▸▸▸▸▸▸▸▸▸ waits once ...........
           GPU   ▒ ▒ ▒ ▒ ██████████▒▒▒▒██████████
           ▸ launch   ▒ short kernel   █ matmul
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `item_each` | `loss.item()` in every iteration | baseline, 24.4 ms | the device idles while the next short kernels are launched |
| `deferred` | the losses are read once, at the end | 1.4x, 17.0 ms; *same* on a CPU | one wait for 100 iterations |

## What waits

A GPU works through a queue (a *stream*) of kernels, and Python runs ahead of it: while the long
kernels of one iteration compute, those of the next are launched. `loss.item()` needs a number on
the host, so it waits until the queue is empty. `print(loss)`, `if loss > x:`, `.cpu()` and
`.tolist()` wait as well.

## What a wait costs

Each iteration begins with short kernels (rows are normalized step by step) and ends with two matrix
products (matmuls). While matmuls run, launching the short kernels of the next iteration costs
nothing. After a wait the device idles while each of them is launched.

    cost of a wait = way to the host and back + launches up to the first long kernel

## Where there is little to gain

Where kernels run far longer than that, the wait is small beside them. Where the host is slower than
the device all the time, nothing runs ahead. A wait then costs no more than the copy of the number
and the way back, some 13 us (1.14x, an H100 with batch=256, width=512). Fewer launches help there
(a CUDA graph, a compiler), and afterwards the wait may matter.

On a CPU *same* is the right answer: every operation is finished when its call returns, and
`.item()` reads four bytes. To watch a loss, every hundredth step is enough.
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
