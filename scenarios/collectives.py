"""Collectives: the same all-reduce by other ways, by size, in bus bandwidth.

An all-reduce of S bytes over n ranks can be made in one step (everybody reads everything and adds
it up itself: (n-1) S over each link, one wait for each other) or in two (each adds up its n-th, a
reduce-scatter; then all collect the parts, an all-gather: 2 (n-1)/n S over each link, two waits).
Small tensors are all latency, so one step wins; large ones are all bytes, so two steps win; with
two ranks both move the same. NCCL and gloo choose by size, and pay for being general: a launch, a
protocol that works over any link, a copy through buffers of their own.

Symmetric memory is memory that every GPU has mapped at a known place of all others: a kernel loads
and adds the others' values itself, without a library's protocol. torch has it (alpha; tried with
torch 2.11 and 2.13) as `one_shot` and `two_shot`. Each variant here copies its values into the
place where it works, reduces, and leaves the sum where it is checked, on every rank: the same bytes
and the same waits on all sides, which comparisons of such kernels often forget. NCCL's multicast
(NVLS) is off, as on hosts that are shared.

NVSHMEM gives such memory too, between hosts as well. torch has its put, get, broadcast and
all-to-all, no all-reduce; two all-to-all make one (`exchanged`): of parts, which each rank adds up,
then of sums. A process has memory of one kind, so `--set memory=NVSHMEM` chooses it, for all three.

On two H100s over NVLink (torch 2.11) symmetric memory is ahead up to 16 MiB: two_shot is 2.1x at 1
KiB, 1.9x at 1 MiB (one_shot 1.85x and 1.7x) and 1.07x at 16 MiB, where one_shot has fallen behind.
NCCL is from 256 MiB on: there two_shot is 0.90x, one_shot 0.57x and exchanged 0.62x. Memory of
NVSHMEM's is as fast as CUDA's; exchanged is behind NCCL at every size.

Bytes per second are NCCL-tests' bus bandwidth, S times 2 (n-1)/n over the time: it says how near an
ideal link one is, whatever n. `gpulab --calibrate --ranks 2` measures that of the library by size,
and the roof here is its best. `--sweep kib` draws the sizes: look for the one at which the order
turns around. The bound: over NVLink of 450 GB/s in each direction 1 MiB takes 2.3 us, far less than
any launch; over gloo on one machine some GB/s, and its 0.1 to 2 ms of latency are most of the rest.
"""

import torch
import torch.distributed as dist

from gpulab import KiB, Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={"ranks": 2, "kib": 1024, "memory": "CUDA"},
    cpu={"kib": 256},
    smoke={"kib": 4},
    sweep={"kib": (1, 64, 1024, 16 * 1024, 256 * 1024, 1024 * 1024)},
    ranks="ranks",
    roof="all-reduce",
    item="all-reduce",
    no_effect_reason="with two ranks both ways move the same bytes, and the link is the limit",
    claim="playbook: symmetric memory beats NCCL for small messages, NCCL for large ones",
    terms=("all-reduce", "nccl", "nvlink", "nvls"),
)


@scenario.variant
def all_reduce(lab, kib):
    """The library's own: NCCL on GPUs, gloo on a CPU."""
    given, total = _tensors(lab, kib)

    def step():
        total.copy_(given)
        dist.all_reduce(total, group=lab.group)

    return _work(lab, step, given, total)


@scenario.variant
def two_steps(lab, kib):
    """A reduce-scatter and an all-gather of the library's."""
    given, total = _tensors(lab, kib)
    part = torch.zeros(given.numel() // lab.ranks, device=lab.device)

    def step():
        dist.reduce_scatter_tensor(part, given, group=lab.group)
        dist.all_gather_into_tensor(total, part, group=lab.group)

    return _work(lab, step, given, total)


@scenario.variant
def gathered(lab, kib):
    """One step: all-gather, then everybody adds up."""
    given, total = _tensors(lab, kib)
    all_of_them = torch.zeros(lab.ranks, given.numel(), device=lab.device)

    def step():
        dist.all_gather_into_tensor(all_of_them.view(-1), given, group=lab.group)
        torch.sum(all_of_them, dim=0, out=total)

    return _work(lab, step, given, total)


@scenario.variant(needs=("cuda",))
def one_shot(lab, kib, memory):
    """Symmetric memory: one kernel reads all ranks' values and adds them up."""
    given, total = _tensors(lab, kib)
    shared = _symmetric(lab, memory, given)
    name = lab.group.group_name

    def step():
        shared.copy_(given)
        total.copy_(torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", name))

    return _work(lab, step, given, total)


@scenario.variant(needs=("cuda",))
def two_shot(lab, kib, memory):
    """Symmetric memory: one kernel adds up its part, and writes it to all ranks."""
    given, total = _tensors(lab, kib)
    shared = _symmetric(lab, memory, given)
    name = lab.group.group_name

    def step():
        shared.copy_(given)
        torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", name)
        total.copy_(shared)

    return _work(lab, step, given, total)


@scenario.variant(needs=("cuda",))
def exchanged(lab, kib, memory):
    """NVSHMEM: an all-to-all of parts, which are added up, and one of their sums."""
    if memory != "NVSHMEM":
        lab.skip("an all-to-all of NVSHMEM's needs its memory: --set memory=NVSHMEM")
    given, total = _tensors(lab, kib)
    shared, parts, sums = (_symmetric(lab, memory, given) for _ in range(3))
    by_rank = parts.view(lab.ranks, -1)
    own = torch.empty_like(by_rank[0])
    name = lab.group.group_name

    def step():
        shared.copy_(given)
        torch.ops.symm_mem.nvshmem_all_to_all(shared, parts, name)
        torch.sum(by_rank, dim=0, out=own)
        shared.view(lab.ranks, -1).copy_(own)
        torch.ops.symm_mem.nvshmem_all_to_all(shared, sums, name)
        total.copy_(sums)

    return _work(lab, step, given, total)


def _tensors(lab, kib):
    given = torch.randn(kib * KiB // 4, device=lab.device)
    return given, torch.zeros_like(given)


def _symmetric(lab, memory, like):
    """Memory that all ranks have mapped, for as many values as a tensor has."""
    try:
        import torch.distributed._symmetric_memory as symmetric

        if symmetric.get_backend(lab.device) != memory:
            symmetric.set_backend(memory)
        shared = symmetric.empty(like.numel(), dtype=like.dtype, device=lab.device)
        symmetric.rendezvous(shared, lab.group)
    except (ImportError, AttributeError, RuntimeError) as error:
        lab.skip(f"no symmetric memory of {memory} here: {str(error).splitlines()[0]}")
    return shared


def _work(lab, step, given, total):
    bus_bytes = given.nbytes * 2 * (lab.ranks - 1) // lab.ranks
    return Work(step, bytes=bus_bytes, inputs=given, output=total)
