"""Collectives: the same all-reduce by other ways, by size, in bus bandwidth.

**In short:** a small all-reduce pays for waits and a large one for bytes, so the best way depends on the size.

```text
            rank 0          rank 1     S bytes, two ranks
one step    ████████ ◀────▶ ████████   each reads all of the other's
                                       and adds up: one wait

two steps   ████░░░░ ◀────▶ ░░░░████   each adds up its half █,
                                       reduce-scatter,
            ████████ ◀────▶ ████████   then both collect the halves,
                                       all-gather: two waits
```

| variant | what changes | expected (two H100s, NVLink) | why |
|---|---|---|---|
| `all_reduce` | the library's own: NCCL, or gloo on a CPU | baseline, 56 us at 1 MiB; fastest from 256 MiB on | chooses by size, and pays for being general |
| `two_steps` | a reduce-scatter and an all-gather of the library's | 0.69x at 1 MiB | two launches and two waits, the same bytes |
| `gathered` | an all-gather, then each adds up | 0.90x at 1 MiB, inconclusive | one wait, and a pass over memory for the sum |
| `one_shot` | symmetric memory: a kernel reads all and adds up | 1.85x at 1 KiB, 1.7x at 1 MiB, 0.57x at 256 MiB | no protocol between launch and load |
| `two_shot` | symmetric memory: a kernel adds up its part, writes it to all | 2.1x at 1 KiB, 1.9x at 1 MiB, 1.07x at 16 MiB, 0.90x at 256 MiB | each value is loaded by one rank alone |
| `exchanged` | NVSHMEM: two all-to-alls, of parts and of sums | behind at every size, 0.62x at 256 MiB | torch has no all-reduce of NVSHMEM's |

## One step or two

Of S bytes, on n ranks, each link carries

    one step     (n-1) S
    two steps    2 (n-1)/n S

Small tensors are all latency, so one step wins. Large ones are all bytes, so two steps win. With two
ranks both move the same. At 450 GB/s (NVLink, each direction) 1 MiB takes 2.3 us, far less than a
launch. gloo on one machine has some GB/s, and 0.1 to 2 ms of latency.

Bytes per second are NCCL-tests' bus bandwidth, two steps' bytes over the time, whatever n is. The
roof is the library's best, from `gpulab --calibrate --ranks 2`. `--sweep kib` draws the sizes.

## Symmetric memory, not NVSHMEM

Symmetric memory is mapped at a known place of all other GPUs: a kernel loads their values itself.
torch has it (alpha; tried with 2.11 and 2.13). Each variant copies its values to where it works, and
leaves the sum where it is checked: the same waits for all, which comparisons often forget.

NVSHMEM gives such memory between hosts too. It needs its library, which comes with torch for CUDA,
and between hosts a network that reads GPU memory (GPUDirect RDMA). `--set memory=NVSHMEM` chooses it
for the last three variants, as a process has one kind; it is as fast as CUDA's.

What it is for is not tried here: puts and gets inside a kernel that computes. torch wraps them for
Triton (`putmem_signal_block`, `signal_wait_until`; alpha). A put with a signal, a wait for it,
and a signal back that a slot is free are a queue between GPUs. With two slots one is filled while the
other is used. `pipeline_handoff` measures two slots with NCCL, where the host starts each copy.

## NVLS, not used here

NVLS (NVLink SHARP) lets the switch add up. It needs NVSwitch of the Hopper generation or later,
NVIDIA's fabric manager, and the right to create multicast memory. By count, each link then carries

    (n+1)/n S in each direction

less than two steps from four ranks on, and more for two. It is off, as a shared host may not give
that right. Ranks run with `NCCL_NVLS_ENABLE=0`, `TORCH_SYMM_MEM_DISABLE_MULTICAST=1` and
`NVSHMEM_DISABLE_NVLS=1`, unless you set them. Without the second, torch creates multicast memory
where symmetric memory is set up. These only read what is there:

    env | grep -E 'NVLS|MULTICAST'
    nvidia-smi -q | grep -A 3 Fabric

and in Python (False too where the second variable is set)

    from torch._C._autograd import DeviceType
    from torch._C._distributed_c10d import _SymmetricMemory
    _SymmetricMemory.has_multicast_support(DeviceType.CUDA, 0)
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
    terms=("all-reduce", "nccl", "nvlink", "nvls", "symmetric memory", "nvshmem"),
)


@scenario.variant
def all_reduce(lab, kib):
    """The library's own all-reduce: NCCL on GPUs, gloo on a CPU."""
    given, total = _tensors(lab, kib)

    def step():
        total.copy_(given)
        dist.all_reduce(total, group=lab.group)

    return _work(lab, step, given, total)


@scenario.variant
def two_steps(lab, kib):
    """The library's reduce-scatter and all-gather, in place of its all-reduce."""
    given, total = _tensors(lab, kib)
    part = torch.zeros(given.numel() // lab.ranks, device=lab.device)

    def step():
        dist.reduce_scatter_tensor(part, given, group=lab.group)
        dist.all_gather_into_tensor(total, part, group=lab.group)

    return _work(lab, step, given, total)


@scenario.variant
def gathered(lab, kib):
    """One step in place of two: the library's all-gather, then each rank adds up all."""
    given, total = _tensors(lab, kib)
    all_of_them = torch.zeros(lab.ranks, given.numel(), device=lab.device)

    def step():
        dist.all_gather_into_tensor(all_of_them.view(-1), given, group=lab.group)
        torch.sum(all_of_them, dim=0, out=total)

    return _work(lab, step, given, total)


@scenario.variant(needs=("cuda",))
def one_shot(lab, kib, memory):
    """Symmetric memory, no library: one kernel reads all ranks' values and adds them up."""
    given, total = _tensors(lab, kib)
    shared = _symmetric(lab, memory, given)
    name = lab.group.group_name

    def step():
        shared.copy_(given)
        total.copy_(torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", name))

    return _work(lab, step, given, total)


@scenario.variant(needs=("cuda",))
def two_shot(lab, kib, memory):
    """Symmetric memory, each rank its part: one kernel adds it up, and writes it to all ranks."""
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
