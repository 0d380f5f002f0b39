"""Pipeline handoff: hand a batch to the next stage while the one after it is computed.

**In short:** a second buffer lets a batch travel while the next is computed, and gains where the computation leaves hardware free for it.

```text
             time ─────────────────────▶    a digit: a batch
blocking     compute  1111   2222   3333
             link         111    222    333

double_      compute  111122223333
buffered     link         111 222 333

             c = 4, s = 3:  3 (c + s) = 21 against 3 c + s = 15
```

| variant | what changes | expected (two H200s) | why |
|---|---|---|---|
| `blocking` | receive, compute, send, one after the other | baseline, 4.40 ms | while a result travels neither neighbour computes |
| `double_buffered` | two buffers: `irecv` before computing, `isend` behind it | 1.04x, inconclusive | between the matmuls of a batch NCCL's kernels find SMs |
| `before_all` | the same, NCCL's streams with a higher priority | 1.05x | transfers begin at once, and take SMs from the matmuls |

## A stage, and its buffers

A pipeline cuts a model into stages, a rank each; every batch goes through all. A buffer is used
again only when its transfer is over and its batch is computed. One slip, and a neighbour gets the
batch before, fast and without an error. So every stage's results are compared.

## What overlap can gain

With c for the computation of a batch, and s for its bytes over the bandwidth, b batches take

    blocking           b (c + s)
    double_buffered    b max(c, s)

so 2x at most, where the two are equal. The default has 67 MB a batch, 0.2 ms at 350 GB/s (NVLink),
2.7 ms at 25 GB/s (PCIe). Its 26 GFLOP take 0.6 ms at 45 TFLOP/s (fp32 on an H100). That is up to 1.3x
with NVLink, 1.2x with PCIe. `--sweep width` shifts the balance: computing grows with its square, bytes
with itself.

## Where it does not help

NCCL moves bytes by kernels, which need SMs. Where a batch is one matmul it is there first and fills
all SMs, and nothing is hidden (0.985x, two H100s); here a batch is three, and little is. With
`before_all` the matmul lacks what the transfer takes, and a transfer that waits for its neighbour
holds its SMs. More is to be had where a stage has many short kernels, leaves SMs free, or sends
without SMs (copy engines, a network card).

No overlap removes the filling, in which later stages have nothing to do. A timed block pays it once:
the first stage begins its next step while the last is still in this one. NCCL's blocking calls block
the stream, not the host.

On a CPU the cores that could compute copy the bytes. With as many ranks as cores two buffers gain
only that neighbours need not meet at every batch.
"""

from functools import cache

import torch
import torch.distributed as dist

from gpulab import Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={"ranks": 2, "batches": 4, "layers": 3, "rows": 65536, "width": 256},
    cpu={"batches": 8, "rows": 256, "width": 256},
    smoke={"batches": 5, "rows": 8, "width": 16},
    sweep={"width": (128, 256, 512, 1024)},
    ranks="ranks",
    item="batch",
    no_effect_reason="the transfer is short beside computing, or takes the cores that compute",
    claim="performance basics: transfers hidden behind computing; at most 2x by arithmetic",
    terms=("pipeline parallel", "send recv", "p2p", "double buffering"),
)
_BUFFERS = 2


@scenario.variant
def blocking(lab, batches, layers, rows, width):
    """Receive, compute, send: one after the other, with one buffer."""
    stage = _Stage(lab, batches, layers, rows, width)
    arriving = torch.empty(rows, width, device=lab.device)

    def step():
        for index in range(batches):
            batch = stage.batches[index]
            if stage.before is not None:
                with lab.phase("receive"):
                    dist.recv(arriving, stage.before, group=lab.group)
                batch = arriving
            stage.compute(batch, index)
            if stage.after is not None:
                with lab.phase("send"):
                    dist.send(stage.results[index], stage.after, group=lab.group)

    return stage.work(step)


@scenario.variant
def double_buffered(lab, batches, layers, rows, width):
    """Two buffers: the next batch comes in, and the last result goes out, during the computation."""
    return _double_buffered(lab, batches, layers, rows, width, lab.group)


@scenario.variant(needs=("cuda",))
def before_all(lab, batches, layers, rows, width):
    """The same, with NCCL's kernels before all others: its streams have a higher priority."""
    return _double_buffered(lab, batches, layers, rows, width, _prior_group())


@cache
def _prior_group():
    options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    return dist.new_group(backend="nccl", pg_options=options)


def _double_buffered(lab, batches, layers, rows, width, group):
    stage = _Stage(lab, batches, layers, rows, width)
    arriving = torch.empty(_BUFFERS, rows, width, device=lab.device)

    def receive(index):
        if stage.before is None or index >= batches:
            return None
        return dist.irecv(arriving[index % _BUFFERS], stage.before, group=group)

    def step():
        sent = [None] * _BUFFERS
        received = receive(0)
        for index in range(batches):
            slot = index % _BUFFERS
            batch = stage.batches[index]
            if received is not None:
                with lab.phase("receive"):
                    received.wait()
                batch = arriving[slot]
            received = receive(index + 1)  # into the buffer that the last computation has read
            stage.compute(batch, index)
            if stage.after is None:
                continue
            with lab.phase("send"):
                if sent[slot] is not None:
                    sent[slot].wait()
                sent[slot] = dist.isend(stage.results[index], stage.after, group=group)
        with lab.phase("send"):
            for transfer in sent:
                if transfer is not None:
                    transfer.wait()

    return stage.work(step)


class _Stage:
    """What this rank computes, and which ranks are before and after it."""

    def __init__(self, lab, batches, layers, rows, width):
        self.before = lab.rank - 1 if lab.rank > 0 else None
        self.after = lab.rank + 1 if lab.rank < lab.ranks - 1 else None
        weights = torch.Generator(lab.device).manual_seed(lab.rank)
        shape = layers, width, width
        self._weights = torch.randn(shape, generator=weights, device=lab.device)
        self._weights /= width**0.5
        self.batches = torch.randn(batches, rows, width, device=lab.device)
        self.results = torch.empty(batches, rows, width, device=lab.device)
        self._between = torch.empty(2, rows, width, device=lab.device)
        self._lab = lab

    def compute(self, batch, index):
        with self._lab.useful():
            for layer, weight in enumerate(self._weights):
                last = layer == len(self._weights) - 1
                out = self.results[index] if last else self._between[layer % 2]
                batch = torch.mm(batch, weight, out=out).tanh_()

    def work(self, step):
        batches, rows, width = self.batches.shape
        return Work(
            step,
            bytes=self.batches.nbytes,  # across each link
            flops=2 * batches * rows * width**2 * len(self._weights),
            dtype="fp32",
            items=batches,
            inputs=self.batches,
            output=self.results,
        )
