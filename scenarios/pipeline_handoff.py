"""Pipeline handoff: hand a batch to the next stage while the one after it is computed.

A pipeline cuts a model into stages, a rank each. Every batch goes through all stages, and each
stage receives activations, computes, and sends its own. With blocking calls a stage does one of the
three at a time: while its result travels it computes nothing, and its neighbour, which waits for
the same bytes, does neither.

With two buffers for what comes in, `irecv` asks for the next batch before this one is computed, and
`isend` lets a result travel while the next one is computed; two of them may be under way. A buffer
is used again only when its transfer is over and its batch has been computed. One slip in the
bookkeeping, and a neighbour gets the batch before, fast and without an error: every stage's results
are compared here, and a batch that was sent in place of another is wrong in all stages behind it.

The bound: with c for the computation of a batch and s for its bytes over the bandwidth of the link,
b batches take a stage b (c + s) when every call blocks, and b times the longer of c and s when
transfers overlap. So overlap gains up to 2x, where the two are equal, and next to nothing where one
is far longer. The default has 67 MB a batch, 0.2 ms at 350 GB/s (NVLink) and 2.7 ms at 25 GB/s
(PCIe), and 17 GFLOP, 0.4 ms at 45 TFLOP/s (fp32 on an H100): at most 1.5x with NVLink, 1.1x with
PCIe. `--sweep width` shifts the balance: computing grows with its square, the bytes with itself.

On two H100s `double_buffered` gains nothing (0.99x). NCCL moves bytes by kernels, which need SMs: a
matmul that was there first fills all of them, and lets the transfer begin with its last blocks.
`before_all` gives NCCL's streams a higher priority, and gains 7 to 8 % (two runs): what the
transfer takes is missing in the matmul, and a transfer that waits for its neighbour holds its SMs
meanwhile.

No overlap removes the filling, in which the later stages have nothing to do yet. It is paid once
for all steps of a timed block, since the first stage begins its next step while the last one is
still in this one. NCCL's blocking calls block the stream, not the host.

On a CPU the bytes are copied by cores that could compute. With as many ranks as cores a transfer
is not idle time but work of its own; what two buffers gain there is that neighbours no longer have
to meet at every batch.
"""

from functools import cache

import torch
import torch.distributed as dist

from gpulab import Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={"ranks": 2, "batches": 4, "rows": 32768, "width": 512},
    cpu={"batches": 8, "rows": 256, "width": 256},
    smoke={"batches": 5, "rows": 8, "width": 16},
    sweep={"width": (128, 256, 512, 1024)},
    ranks="ranks",
    item="batch",
    no_effect_reason="the transfer is short beside computing, or takes the cores that compute",
    claim="performance basics: transfers hidden behind computing; at most 2x by arithmetic",
    terms=("pipeline parallel", "send recv", "p2p"),
)
_BUFFERS = 2


@scenario.variant
def blocking(lab, batches, rows, width):
    """Receive, compute, send: one after the other."""
    stage = _Stage(lab, batches, rows, width)
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
def double_buffered(lab, batches, rows, width):
    """The next batch comes in, and the last result goes out, during the computation."""
    return _double_buffered(lab, batches, rows, width, lab.group)


@scenario.variant(needs=("cuda",))
def before_all(lab, batches, rows, width):
    """The same with NCCL's kernels before all others: its streams have a higher priority."""
    return _double_buffered(lab, batches, rows, width, _prior_group())


@cache
def _prior_group():
    options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    return dist.new_group(backend="nccl", pg_options=options)


def _double_buffered(lab, batches, rows, width, group):
    stage = _Stage(lab, batches, rows, width)
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

    def __init__(self, lab, batches, rows, width):
        self.before = lab.rank - 1 if lab.rank > 0 else None
        self.after = lab.rank + 1 if lab.rank < lab.ranks - 1 else None
        weights = torch.Generator(lab.device).manual_seed(lab.rank)
        self._weight = torch.randn(width, width, generator=weights, device=lab.device)
        self._weight /= width**0.5
        self.batches = torch.randn(batches, rows, width, device=lab.device)
        self.results = torch.empty(batches, rows, width, device=lab.device)
        self._lab = lab

    def compute(self, batch, index):
        with self._lab.useful():
            torch.mm(batch, self._weight, out=self.results[index]).tanh_()

    def work(self, step):
        batches, rows, width = self.batches.shape
        return Work(
            step,
            bytes=self.batches.nbytes,  # across each link
            flops=2 * batches * rows * width**2,
            dtype="fp32",
            items=batches,
            inputs=self.batches,
            output=self.results,
        )
