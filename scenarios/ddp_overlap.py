"""DDP overlap: gradients travel during the backward, and only when they must.

**In short:** send a bucket of gradients as soon as it is full, and send none before the last micro-batch.

```text
             time ──────────────────────────────▶
late         backward  ████████
             link              ▒▒▒▒▒▒▒▒    all of them exposed

overlapped   backward  ████████
             link        ▒▒▒▒▒▒▒▒          the last bucket exposed

accumulated  backward  ████████ ████████ ████████ ████████
             link                                   ▒▒▒▒▒▒▒▒
             █ a micro-batch   ▒ its gradients, or their sum
```

| variant | what changes | expected (two H200s) | why |
|---|---|---|---|
| `late` | one bucket as large as the model | baseline, 22.5 ms | it is full when the backward ends, so all of it is exposed |
| `overlapped` | buckets of `bucket_kib` | 1.13x | only the last is exposed where the link keeps up; NCCL takes SMs meanwhile |
| `accumulated` | `no_sync()` for all micro-batches but the last | 1.45x; 1.28x over `overlapped` | a quarter of the transfers is left |

## What DDP does

DistributedDataParallel gives every rank the mean of all ranks' gradients. It puts them into buckets
in the order in which the backward makes them (`bucket_cap_mb`, 25 MiB by default). A full one is
reduced while the backward goes on. A bucket waits for the last of its gradients.

Of several micro-batches only the sum has to travel. Without `no_sync()` each backward reduces what
is there so far: the same gradients for several times the bytes. With it around the last one too,
each rank would learn from its own data: gpulab compares the gradients on every rank.

## What overlap can gain

For a byte of gradients n ranks move over each link

    2 (n-1)/n bytes

`late` takes forward, backward and transfer; `overlapped` the forward, and the longer of the others.
With two ranks the default's 537 MB take 2.1 ms a micro-batch at 250 GB/s (NVLink, measured), 21 ms
at 25 GB/s (PCIe). The default has 128 rows, so that its backward takes about as long
as the transfer over NVLink.

The rate shown is the bus bandwidth, over the whole step. It is no score: `accumulated` sends a
quarter of the bytes, so it has less of it, and is no worse. Judge by rows per second.

## Where it does not help

With 4 layers and 256 rows up to 26 % of a step could be hidden, and 6 % were (two H100s). NCCL's kernels need
SMs, and matmuls beside them take longer. The last of 4 buckets is a quarter of the bytes, and
exposed. Overlap needs many layers, and a transfer about as long as the backward. With more rows the
backward is longer beside it, and there is less to gain. What is not sent costs nothing.

On a CPU the transfer takes the cores that compute: expect little of overlap, more of `accumulated`.

## What the source says

The paper on DDP (Li et al., 2020) has 38 % and 35 % for overlap on NCCL (ResNet, BERT). On gloo it
has 27 % and 21 %: there the GPU computes and the CPU sends.
"""

from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel

from gpulab import KiB, MiB, Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={
        "ranks": 2,
        "layers": 8,
        "width": 4096,
        "rows": 128,
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
    terms=("all-reduce", "data parallel", "distributed data parallel", "no_sync"),
)
_ONE_BUCKET = 1 << 40


@scenario.variant
def late(lab, layers, width, rows, micro_batches):
    """One bucket, which is full only when the backward ends; reduced for every micro-batch."""
    return _gradients(lab, layers, width, rows, micro_batches, _ONE_BUCKET, micro_batches)


@scenario.variant
def overlapped(lab, layers, width, rows, micro_batches, bucket_kib):
    """Several buckets in place of one, reduced during the backward; for every micro-batch."""
    return _gradients(lab, layers, width, rows, micro_batches, bucket_kib * KiB, micro_batches)


@scenario.variant
def accumulated(lab, layers, width, rows, micro_batches, bucket_kib):
    """The same buckets, reduced during the last backward alone: no_sync() before it."""
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
