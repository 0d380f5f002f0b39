"""Autocast: mixed precision speeds up the matmuls of a training step, and nothing else.

Under `torch.autocast` the operations that gain from it, matrix products (matmuls) above all, run in
16 bits, and those that need the range or the precision (the loss, softmax, on a GPU layer norms) in
fp32. Parameters, gradients and the optimizer stay in fp32. Tensor cores, or the bf16 instructions
of a recent CPU, do the matmuls several times faster, and activations take half the memory. What is
left is the rest of the step: conversions, normalizations, the update. So the step gains less than a
matmul does (Amdahl's law), and *phase share*, shown during the run, tells it: the update takes as
long in bf16 as in fp32, so its share grows. With a scaler that phase also contains the scaler's
pass over the gradients and its wait.

bf16 has the range of fp32 and 7 mantissa bits: it needs no scaling. fp16 has 10 mantissa bits and a
small range: below 3e-8 (half of its smallest number) a gradient becomes zero, above 65,504
infinite. A `GradScaler` multiplies the loss by a large factor and divides the gradients by it
before the update; if a gradient is not finite it skips the update and lowers the factor. The price
is a pass over all gradients, and the host waits in every step to read whether they were finite.
Where there is bf16, prefer it.

It does not help where the step waits for launches or memory, and small layers may lose: each weight
is converted in every step, which adds kernels. On a CPU without bf16 instructions it is slower.
TF32 (`precision`) is a smaller step that needs no autocast at all. The forward pass and the loss
belong inside the context; `backward()` outside of it runs each operation in the type that its
forward pass had.

Losses and parameters after the step are compared with those of fp32. The optimizer is plain SGD
with momentum, as its update is proportional to the gradient; Adam's first updates have the sign of
gradients that may be noise.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"batch": 8192, "width": 1024, "layers": 8},
    cpu={"batch": 256, "width": 256, "layers": 2},
    smoke={"batch": 16, "width": 32, "layers": 1},
    sweep={"width": (256, 512, 1024, 2048)},
    item="sample",
    claim="our own measurement: 2.0x (bf16, a CPU with AMX)",
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
