"""Pinned memory: page-locked host buffers are copied at the speed of the link.

The GPU's copy engine reads physical addresses, and the system may move or swap a pageable page at
any time. So the driver first copies pageable memory, piece by piece, into a page-locked buffer of
its own: the CPU reads and writes every byte, and the link (PCIe) waits for it. A buffer that is
page-locked (pinned) is read by the copy engine directly. Measured here on an H200: 256 MiB take
30.3 ms pageable and 4.89 ms pinned, which is 6.2x, at 99 % of the link; 64 MiB, the default, take
9.5 and 1.27 ms. Small copies gain less, as they take the latency of a launch either way (sweep the
size), and so does a fast CPU on a slow link. Bounds are 32 GB/s for 16 lanes of PCIe 4 and 64 GB/s
for PCIe 5, before protocol overhead.

`non_blocking=True` lets the host go on before the copy has ended. For copies alone that saves the
wait between two of them, 30 us: gpulab compares it with `pinned`. It helps when the host has other
work: in the last two variants a quarter of the batch is in pageable memory and has to be moved into
a pinned buffer, first after the copy of the rest (compared with `pinned`: what that work costs),
then during it. The time saved is at most the shorter of the two. From pageable memory
`non_blocking=True` changes little: the staging remains.

Pinning is not free. `pin_memory()` in every step copies the batch on the host before it is sent,
which is the staging again, on one thread and without the driver's overlap of staging and sending;
the first call also page-locks new memory, a system call that takes longer than the copy. Allocate
pinned buffers once and keep them. By default PyTorch rounds such blocks up to a power of two and
keeps them after use; page-locked memory is lost to the rest of the system.

Pitfall: a pinned buffer must not be overwritten before its copy has ended, which is what the event
in the code is for; and the data of a copy *to* the host with `non_blocking=True` is only there once
the stream has been waited for. The lesson needs a CUDA device: on a CPU nothing crosses a link.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    needs=("cuda",),
    roof="host to device",
    params={"mib": 64},
    smoke={"mib": 4},
    sweep={"mib": (1, 4, 16, 64, 256)},
    claim="performance basics, quick-start guide and bottleneck guide: 2-6x",
    no_effect_reason=(
        "the same bytes cross the link at the same speed: non_blocking frees the host, not the link"
    ),
)


@scenario.variant
def pageable(lab, mib):
    """Ordinary memory: the driver stages every byte."""
    return _copies(lab, _pageable(lab, mib))


@scenario.variant
def pinned(lab, mib):
    """Page-locked memory, allocated once: the copy engine reads it directly."""
    return _copies(lab, [part.pin_memory() for part in _pageable(lab, mib)])


@scenario.variant(against="pinned")
def pinned_non_blocking(lab, mib):
    """The same buffers, and the host does not wait for the copies; it has nothing else to do."""
    return _copies(lab, [part.pin_memory() for part in _pageable(lab, mib)], non_blocking=True)


@scenario.variant
def pin_per_call(lab, mib):
    """The trap: pageable memory is pinned anew in every step, which copies it on the host first."""
    return _copies(lab, _pageable(lab, mib), prepare=torch.Tensor.pin_memory)


@scenario.variant(against="pinned")
def copy_then_work(lab, mib):
    """The host waits for the copy of three quarters, then moves the last quarter to a pinned
    buffer.
    """
    return _with_host_work(lab, mib, non_blocking=False)


@scenario.variant(against="copy_then_work")
def work_during_copy(lab, mib):
    """The same work of the host, done while the copy engine reads the rest."""
    return _with_host_work(lab, mib, non_blocking=True)


def _pageable(lab, mib):
    """A batch on the host, in two tensors: a quarter, and the rest."""
    quarter = mib * MiB // 16  # fp32
    return [torch.rand(count, device=lab.device).cpu() for count in (quarter, 3 * quarter)]


def _copies(lab, host, *, non_blocking=False, prepare=lambda part: part):
    on_device = [torch.empty_like(part, device=lab.device) for part in host]

    def step():
        for to, part in zip(on_device, host, strict=True):
            to.copy_(prepare(part), non_blocking=non_blocking)
        return on_device

    return _work(step, host)


def _with_host_work(lab, mib, *, non_blocking):
    fresh, rest = _pageable(lab, mib)
    rest, staging = rest.pin_memory(), torch.empty_like(fresh, pin_memory=True)
    on_device = [torch.empty_like(part, device=lab.device) for part in (fresh, rest)]
    sent = torch.cuda.Event()

    def step():
        on_device[1].copy_(rest, non_blocking=non_blocking)
        with lab.phase("host work"):
            sent.synchronize()  # the step before may still be reading the staging buffer
            staging.copy_(fresh)
        on_device[0].copy_(staging, non_blocking=non_blocking)
        sent.record()
        return on_device

    return _work(step, [fresh, rest])


def _work(step, host):
    return Work(step, bytes=sum(part.nbytes for part in host), inputs=host)
