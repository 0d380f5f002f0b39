"""Gradient buckets: one large all-reduce in place of a hundred small ones, behind the backward.

**In short:** an all-reduce costs a latency whatever its size, so send gradients in buckets, and each bucket while the backward goes on.

```text
             time ───────────────────────────────▶
per_tensor   ████████ ▒ ▒ ▒ ▒ ▒ ▒ ▒ ▒    two for each layer
flat         ████████c▒▒▒▒▒▒▒▒c          one, and two copies

overlapped   ████████     c              each bucket as soon as
               ▒▒ ▒▒ ▒▒ ▒▒               it is full

             █ backward   ▒ bytes on the link   c a copy
               gaps between transfers are latency
```

| variant | what changes | expected (GPU) | why |
|---|---|---|---|
| `per_tensor` | an all-reduce for each gradient, after the backward | baseline | a small one is nearly all latency, 20 to 40 us (two H100s) |
| `flat` | all gradients in one bucket, one all-reduce | faster, the more tensors and the smaller | one latency, for two passes over memory, which is far faster than the link |
| `overlapped` | buckets of `bucket_kib`, sent during the backward | faster than `flat` where transfer and backward are alike | the last bucket alone is exposed; NCCL takes SMs meanwhile |

## One bucket

Data-parallel training adds up the gradients of all ranks in every step. A model has many small
tensors: a bias and a norm for every weight. They are copied into a flat buffer, the *bucket*,
reduced at once, and copied back. If one is not copied back, that part of the model learns from its
own rank alone, and nothing crashes. So all gradients of all ranks are compared.

## Several buckets

The last layer's gradients are ready long before the first's. Small buckets cost latency, large ones
are ready late: `--sweep bucket_kib`. DDP takes 25 MiB. For a byte of gradients n ranks move over
each link, in whichever buckets,

    2 (n-1)/n bytes

The default has 101 MB of gradients: with two ranks 0.4 ms at 250 GB/s (NVLink), 4 ms at 25 GB/s
(PCIe). A flat bucket adds that to the backward; with overlap a step takes the longer of the two. The
rate shown is NCCL-tests' bus bandwidth, over the whole step.

## Where it does not help

With the default the transfer is a tenth of the step. There `flat` gains 9 % (two H100s), and no more
is shown for `overlapped`: NCCL's kernels take SMs from the matmuls beside them. Overlap needs a
transfer about as long as the backward, so few rows, or a slow link. With 48 layers of 256 rows the
host's launches are the longest part: `flat` gains 1.9x, `overlapped` 1.6x (two H200s).

On a CPU the cores that compute also copy: with as many ranks as cores expect little of overlap.

## What was measured alone

gloo on two ranks of a CPU: a flat bucket was 87-123x faster than 200 tensors of 4 KiB, 9-15x for
64 KiB, 1.0-1.2x for 40 tensors of 1 MiB. Within a step expect less, as there is the backward too.
"""

import torch
import torch.distributed as dist

from gpulab import KiB, Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={"ranks": 2, "layers": 24, "width": 1024, "rows": 2048, "bucket_kib": 25 * 1024},
    cpu={"layers": 24, "width": 128, "rows": 128, "bucket_kib": 400},
    smoke={"layers": 6, "width": 16, "rows": 8, "bucket_kib": 2},
    sweep={"bucket_kib": (64, 256, 1024, 25 * 1024, 200 * 1024)},
    ranks="ranks",
    ladder=True,
    item="row",
    no_effect_reason="latency is a small part of the step, or reducing takes the cores that compute",
    claim="our own measurement: 200 tensors of 4 KiB 87-123x, 40 of 1 MiB 1.0-1.2x (gloo alone)",
    terms=("all-reduce", "data parallel", "ddp", "bucketing"),
)


@scenario.variant
def per_tensor(lab, layers, width, rows):
    """An all-reduce for each gradient, one after the other, after the backward."""
    backward, gradients, given = _model(lab, layers, width, rows)

    def step():
        backward(lambda layer: None)
        with lab.phase("all-reduce"):
            for gradient in gradients:
                dist.all_reduce(gradient, group=lab.group)

    return _work(lab, step, given, gradients, layers, width, rows)


@scenario.variant
def flat(lab, layers, width, rows):
    """One all-reduce in place of one for each: all gradients copied into a bucket, and back."""
    backward, gradients, given = _model(lab, layers, width, rows)
    bucket = _Bucket(gradients)

    def step():
        backward(lambda layer: None)
        with lab.phase("all-reduce"):
            bucket.fill()
            dist.all_reduce(bucket.memory, group=lab.group)
            bucket.scatter()

    return _work(lab, step, given, gradients, layers, width, rows)


@scenario.variant
def overlapped(lab, layers, width, rows, bucket_kib):
    """Several buckets in place of one, each reduced as soon as it is full, during the backward."""
    backward, gradients, given = _model(lab, layers, width, rows)
    buckets = _buckets(gradients, layers, bucket_kib * KiB)

    def step():
        under_way = []

        def send(layer):
            if layer in buckets:
                bucket = buckets[layer]
                bucket.fill()
                sent = dist.all_reduce(bucket.memory, group=lab.group, async_op=True)
                under_way.append((bucket, sent))

        backward(send)
        with lab.phase("all-reduce"):
            for bucket, sent in under_way:
                sent.wait()
                bucket.scatter()

    return _work(lab, step, given, gradients, layers, width, rows)


class _Bucket:
    """Gradients, and memory in which they lie together to be reduced."""

    def __init__(self, gradients):
        self._gradients = [gradient.view(-1) for gradient in gradients]
        self.memory = torch.cat(self._gradients)
        self._parts = self.memory.split([gradient.numel() for gradient in gradients])

    def fill(self):
        torch.cat(self._gradients, out=self.memory)

    def scatter(self):
        torch._foreach_copy_(self._gradients, self._parts)


def _buckets(gradients, layers, most_bytes):
    """Buckets in the order of the backward, each by the layer that fills it."""
    buckets = {}
    waiting = []
    for layer in reversed(range(layers)):
        waiting += gradients[2 * layer : 2 * layer + 2]
        if layer == 0 or sum(gradient.nbytes for gradient in waiting) >= most_bytes:
            buckets[layer] = _Bucket(waiting)
            waiting = []
    return buckets


def _model(lab, layers, width, rows):
    """A backward that calls `ready(layer)` once the gradients of a layer are there, two of each
    layer; and what it depends on.
    """
    alike = torch.Generator(lab.device).manual_seed(0)  # every rank has the same weights
    weights = torch.randn(layers, width, width, generator=alike, device=lab.device)
    weights /= width**0.5
    activations = torch.randn(layers, rows, width, device=lab.device)
    # the loss is divided by the ranks, so that the sum of their gradients is the mean
    of_loss = torch.randn(rows, width, device=lab.device) / (rows * lab.ranks)
    gradients = []
    for _ in range(layers):
        gradients.append(torch.zeros(width, width, device=lab.device))
        gradients.append(torch.zeros(width, device=lab.device))

    def backward(ready):
        of_output = of_loss
        for layer in reversed(range(layers)):
            of_weight, of_bias = gradients[2 * layer : 2 * layer + 2]
            with lab.useful():
                torch.mm(of_output.T, activations[layer], out=of_weight)
                torch.sum(of_output, 0, out=of_bias)
                of_output = of_output @ weights[layer]
            ready(layer)

    return backward, gradients, [activations, of_loss]


def _work(lab, step, given, gradients, layers, width, rows):
    gradient_bytes = sum(gradient.nbytes for gradient in gradients)
    return Work(
        step,
        bytes=gradient_bytes * 2 * (lab.ranks - 1) / lab.ranks,
        flops=4 * rows * width**2 * layers,
        dtype="fp32",
        items=rows * lab.ranks,
        inputs=given,
        output=gradients,
    )
