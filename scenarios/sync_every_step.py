"""Sync every step: read the loss when somebody looks at it, not in every iteration.

A GPU works through a queue, and Python runs ahead of it: while one iteration computes, the kernels of the next are
launched. `loss.item()` needs a number on the host, so it waits until the queue has run dry, and only then can the next
iteration be launched. The device idles for as long as those launches take. Kept on the device and read once at the
end, the losses cost one wait for all iterations. `print(loss)`, `if loss > x:`, `.cpu()` and `.tolist()` wait alike.

The gain is the launch time that was hidden before: large where an iteration is many short kernels, nothing where its
kernels run far longer than their launches. A loss is worth a look now and then, and every hundredth step is enough.

On a CPU there is nothing to find, and *same* is the right answer: every operation is finished when its call returns,
so nothing is queued, nothing runs ahead, and `.item()` reads four bytes.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    params={"iterations": 100, "batch": 256, "width": 512},
    cpu={"iterations": 50, "batch": 128, "width": 256},
    smoke={"iterations": 10, "batch": 4, "width": 16},
    claim="the device idles at every .item()",
    no_effect_reason=(
        "on a CPU nothing is queued, so there is nothing to wait for; on a GPU its kernels outlast their launches"
    ),
)


@scenario.variant
def item_each(lab, iterations, batch, width):
    """Every iteration waits for its loss."""

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
    between, out = (torch.empty(batch, width, device=lab.device) for _ in range(2))

    @torch.no_grad()
    def step():
        losses = []
        for rows in data:
            with lab.useful():
                torch.mm(rows, up, out=between).relu_()
                loss = torch.mm(between, down, out=out).sub_(rows).square_().mean()
            losses.append(keep(loss))
        return collect(losses)

    return Work(step, flops=4 * data.numel() * width, dtype="fp32", items=iterations, inputs=(data, up, down))
