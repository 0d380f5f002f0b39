"""Autocast: mixed precision speeds up the matmuls of a training step, and nothing else.

**In short:** matmuls run in 16 bits, the rest stays in fp32, so a step gains less than a matmul does.

```text
             a training step
fp32         ████████████████████████████████▒▒▒▒
bf16         ████▒▒▒▒
fp16_scaled  ████▒▒▒▒sss
             █ matmuls: several times as fast in 16 bits
             ▒ update, normalization: as long as before
             s scaler: a pass over all gradients, and a wait
```

| variant | what changes | expected (H200, a quick run) | why |
|---|---|---|---|
| `fp32` | everything in 32 bits | baseline, 69.1 ms | no tensor cores |
| `bf16` | autocast: matmuls in bf16 | 7.8x; 2.0x on a CPU with AMX (`batch=256`) | bf16 has the range of fp32 and needs no scaling |
| `fp16_scaled` | autocast in fp16, with a GradScaler | 7.4x | the scaler reads all gradients, and the host waits |

## What autocast does

Under `torch.autocast` matrix products (matmuls) above all run in 16 bits. What needs the range or
the precision stays in fp32: the loss, softmax, on a GPU layer norms. So do parameters, gradients and
the optimizer. Activations take half the memory.

What is left is the rest of the step (Amdahl's law). *Phase share*, shown during the run, tells it:
the update takes as long in bf16 as in fp32, so its share grows.

## Why fp16 needs a scaler

bf16 has 7 mantissa bits. fp16 has 10, and a small range:

    below 3e-8 a gradient becomes zero, above 65,504 infinite

A `GradScaler` multiplies the loss by a large factor, and divides the gradients by it before the
update. If one is not finite it skips the update and lowers the factor. Where there is bf16, prefer
it.

## Where it does not help

Where the step waits for launches or memory. Small layers may lose: each weight is converted in every
step. A CPU without bf16 instructions is slower. TF32 (`precision`) is a smaller step that needs no
autocast.

## How to use and check it

The forward pass and the loss belong inside the context; `backward()` outside of it runs each
operation in the type of its forward pass. Losses and parameters after the step are compared with
those of fp32. The optimizer is SGD with momentum, whose update is proportional to the gradient;
Adam's first updates have the sign of gradients that may be noise.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"batch": 8192, "width": 1024, "layers": 8},
    cpu={"batch": 64, "width": 256, "layers": 1},
    smoke={"batch": 16, "width": 32, "layers": 1},
    sweep={"width": (256, 512, 1024, 2048)},
    item="sample",
    claim="our own measurement: 2.0x (bf16, a CPU with AMX, batch=256)",
    no_effect_reason="matmuls are not what takes the time, or the device has no faster ones in 16 bits",
    terms=("amp", "mixed precision", "autocast", "gradscaler"),
)
_CLASSES, _SCALE = 64, 1024.0


@scenario.variant
def fp32(lab, batch, width, layers):
    """Everything in 32 bits."""
    return _training(lab, batch, width, layers)


@scenario.variant
def bf16(lab, batch, width, layers):
    """Autocast: matmuls in bf16."""
    return _training(lab, batch, width, layers, torch.bfloat16)


@scenario.variant(needs=("cuda",))
def fp16_scaled(lab, batch, width, layers):
    """Autocast: matmuls in fp16, and a GradScaler for the gradients."""
    return _training(lab, batch, width, layers, torch.float16)


class _Block(torch.nn.Module):
    """Of a transformer, the part without attention: most of its arithmetic."""

    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, rows):
        return rows + self.down(torch.nn.functional.gelu(self.up(self.norm(rows))))


def _training(lab, batch, width, layers, dtype=None):
    rows, labels = torch.randn(batch, width), torch.randint(0, _CLASSES, (batch,))
    rows, labels = rows.to(lab.device), labels.to(lab.device)
    blocks = [_Block(width) for _ in range(layers)]
    model = torch.nn.Sequential(*blocks, torch.nn.Linear(width, _CLASSES)).to(lab.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    # The factor stays as it is: probing for a larger one now and then would make a few steps unlike
    # the others.
    scaler = torch.amp.GradScaler(
        lab.device.type, _SCALE, growth_interval=2**31 - 1, enabled=dtype == torch.float16
    )
    loss_of_step = torch.zeros((), device=lab.device)

    def step():
        optimizer.zero_grad()
        with lab.useful():
            with torch.autocast(lab.device.type, dtype, enabled=dtype is not None):
                loss = torch.nn.functional.cross_entropy(model(rows), labels)
            scaler.scale(loss).backward()
        with lab.phase("update"):
            scaler.step(optimizer)
            scaler.update()
        loss_of_step.copy_(loss.detach())

    weights = sum(weight.numel() for weight in model.parameters() if weight.dim() == 2)
    return Work(
        step,
        flops=6 * batch * weights,
        dtype={torch.bfloat16: "bf16", torch.float16: "fp16"}.get(dtype, "fp32"),
        items=batch,
        inputs=(rows, labels),
        state=(model, optimizer),
        output=(loss_of_step, *model.parameters()),
    )
