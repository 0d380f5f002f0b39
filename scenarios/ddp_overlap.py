"""DDP overlap: gradients travel during the backward, and only when they must.

DistributedDataParallel (DDP) gives every rank the mean of all ranks' gradients. It puts them into
buckets in the order in which the backward makes them, and reduces a bucket as soon as it is full,
while the backward goes on. Three things decide what of that a step waits for.

One late bucket: with buckets as large as the model (`bucket_cap_mb`), or a parameter of each bucket
whose gradient comes last, nothing is sent before the backward ends, and all of it is exposed.
Overlapped: buckets of `bucket_kib` (DDP's default is 25 MiB; a larger `--sweep bucket_kib` comes
close to one late bucket), and only the last of them is exposed where the link keeps up.
Accumulated: where a step adds up the gradients of several micro-batches, only the sum has to
travel. `no_sync()` keeps DDP quiet for all but the last of them. Without it each backward reduces
what is there so far: the same gradients in the end, for several times the bytes.

All variants take the same micro-batches and give the same gradients on every rank, which gpulab
compares: with `no_sync()` around the last micro-batch too, each rank would learn from its own data.

The bound: n ranks move 2(n-1)/n bytes over each rank's link for a byte of gradients. The default
has 268 MB of them: with two ranks 1.1 ms per micro-batch at 250 GB/s (NVLink, measured), 11 ms at
25 GB/s (PCIe), beside 2 to 3 ms of forward and backward in fp32 on an H100. `late` takes the sum of
both. `overlapped` takes the longer of backward and transfer, and the forward. `accumulated` has a
quarter of the transfers left to hide. On two H100s `overlapped` gains 6 %, where up to 26 % of the
step could be hidden, and `accumulated` 31 %: NCCL's kernels need a part of the GPU, and matmuls
that run beside them take longer. What is not sent costs nothing.

The paper on DDP (Li et al., 2020) measured 38 % and 35 % for overlap on NCCL (ResNet, BERT), and
27 % and 21 % on gloo. There the GPU computes and the CPU sends. On a CPU the two share the cores:
with as many ranks as cores expect little of overlap, and more of `accumulated`, which sends less.
"""

from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel

from gpulab import KiB, MiB, Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={
        "ranks": 2,
        "layers": 4,
        "width": 4096,
        "rows": 256,
        "micro_batches": 4,
        "bucket_kib": 16 * 1024,
    },
    cpu={"layers": 6, "width": 512, "rows": 16, "bucket_kib": 1200},
    smoke={"layers": 3, "width": 16, "rows": 4, "bucket_kib": 1},
    sweep={"bucket_kib": (1024, 4 * 1024, 16 * 1024, 64 * 1024)},
    ranks="ranks",
    ladder=True,
    item="row",
    no_effect_reason="the transfer is short beside the backward, or takes the cores that compute",
    claim="DDP paper: overlap gains 38 % (ResNet), 35 % (BERT) on NCCL, 27 % and 21 % on gloo",
    terms=("all-reduce", "data parallel", "distributed data parallel"),
)
_ONE_BUCKET = 1 << 40


@scenario.variant
def late(lab, layers, width, rows, micro_batches):
    """One bucket, which is full when the backward ends; reduced for every micro-batch."""
    return _gradients(lab, layers, width, rows, micro_batches, _ONE_BUCKET, micro_batches)


@scenario.variant
def overlapped(lab, layers, width, rows, micro_batches, bucket_kib):
    """Several buckets, reduced during the backward; for every micro-batch."""
    return _gradients(lab, layers, width, rows, micro_batches, bucket_kib * KiB, micro_batches)


@scenario.variant
def accumulated(lab, layers, width, rows, micro_batches, bucket_kib):
    """Several buckets, reduced during the last backward alone: no_sync() before it."""
    return _gradients(lab, layers, width, rows, micro_batches, bucket_kib * KiB, 1)


def _gradients(lab, layers, width, rows, micro_batches, bucket_bytes, reduced):
    """The gradients of all micro-batches, of which the last `reduced` are sent."""
    model = _model(lab, layers, width)
    parallel = DistributedDataParallel(
        model,
        process_group=lab.group,
        bucket_cap_mb=bucket_bytes / MiB,
        gradient_as_bucket_view=True,
    )
    given = torch.randn(micro_batches, rows, width, device=lab.device)
    wanted = torch.randn(micro_batches, rows, width, device=lab.device)
    quiet = micro_batches - reduced

    def step():
        parallel.zero_grad()
        for index in range(micro_batches):
            with parallel.no_sync() if index < quiet else nullcontext():
                with lab.phase("forward"):
                    result = parallel(given[index])
                    loss = torch.nn.functional.mse_loss(result, wanted[index]) / micro_batches
                with lab.phase("backward"):
                    loss.backward()

    gradient_bytes = sum(parameter.nbytes for parameter in model.parameters())
    return Work(
        step,
        bytes=reduced * gradient_bytes * 2 * (lab.ranks - 1) / lab.ranks,
        # the first layer's input has no gradient
        flops=micro_batches * rows * width**2 * (6 * layers - 2),
        dtype="fp32",
        items=micro_batches * rows * lab.ranks,
        inputs=[given, wanted],
        output=lambda: [parameter.grad for parameter in model.parameters()],
    )


def _model(lab, layers, width):
    """The same weights on every rank, and for every seed."""
    alike = torch.Generator(lab.device).manual_seed(0)
    blocks = []
    for _ in range(layers):
        linear = torch.nn.Linear(width, width, device=lab.device)
        for parameter in linear.parameters():
            torch.nn.init.normal_(parameter, std=width**-0.5, generator=alike)
        blocks += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*blocks[:-1])
