"""Model pool: one copy of every model, where all processes can read it.

**In short:** shared memory keeps one copy for all processes and asks nobody; a GPU still fetches from it over PCIe, so large models lose.

```text
rank 0 is asked for model B

on_demand   rank 0 [A C] ◀── B ── [B D] rank 1     4 models kept
pooled      rank 0 ──▶ [A B C D] ◀── rank 1        4 models kept
                  memory that both have mapped
replicated  rank 0 [A B C D]  [A B C D] rank 1     8 models kept
```

| variant | what changes | expected (two H200s, NVLink) | why |
|---|---|---|---|
| `on_demand` | a model is on one rank, and sent to another that is asked for it | baseline, 1.34 ms | (n-1)/n of all requests move W bytes over NVLink |
| `pooled` | all models once, in memory that all ranks map | 2.3x | a copy is one call, and nobody has to be met; W is 0.5 MB here |
| `replicated` | all models on every rank | 2.6x | nothing moves, for n times the memory |

## Who has which model

A service offers more models than a process can keep, and each request names its model. Each rank
serves `requests` requests a step, of `models` models that are the same for all. A pool takes as many
bytes in all as `on_demand`, and nobody has to be asked. Whoever writes to a pool changes the model
of everyone.

## On a CPU

A pool has no link at all: weights are read where they lie, as a rank's own are. Expect `pooled` and
`replicated` to be equal, and `on_demand` several times slower. Its bytes are copied into a socket
and out of it, and both ranks are busy with that.

## Where it does not help

On a GPU the pool is in host memory, page-locked so that the copy engine can read it. A request takes
at least, in the two variants,

    on_demand    W (n-1)/n over the bandwidth between GPUs
    pooled       W         over the bandwidth to the host

so `pooled` loses over NVLink where bytes decide: with a width of 2048 (34 MB) it was 0.37x and 0.26x
(two H100s). Between GPUs with nothing but PCIe the two are alike. Models as small as the default are
decided by latencies: a transfer has to meet its sender. Look for the turn with
`--sweep width=256,512,1024,2048`.

A pool serves as it does in serving systems: it holds all models that no GPU has room for. A GPU
keeps those that are asked for most.

## What is checked

A rank that computes with another model than was asked for is as fast as ever. So the answers are
compared, on every rank.
"""

import os

import torch
import torch.distributed as dist

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={"ranks": 2, "models": 8, "layers": 2, "width": 256, "batch": 16, "requests": 4},
    cpu={"width": 512, "batch": 4},
    smoke={"models": 4, "width": 64},
    ranks="ranks",
    item="request",
    claim="torch.multiprocessing: what is in shared memory goes to other processes without any copies",
    terms=("shared memory between processes", "mmap", "pcie", "model serving"),
)


@scenario.variant
def on_demand(lab, models, layers, width, batch, requests):
    """Each model on one rank alone, which sends it to the rank that is asked for it."""
    weights = _models(models, layers, width)
    held = {}
    for model in range(lab.rank, models, lab.ranks):
        held[model] = weights[model].clone().to(lab.device)
    asked = _asked(lab, models, requests)
    buffer = torch.empty(layers, width, width, device=lab.device)

    def fetch(place):
        """Of this rank's request at a place; all ranks take theirs at the same time."""
        transfers = []
        for rank, model in enumerate(asked[place]):
            owner = model % lab.ranks
            if owner == lab.rank != rank:
                transfers.append(dist.P2POp(dist.isend, held[model], rank, lab.group))
            elif rank == lab.rank != owner:
                transfers.append(dist.P2POp(dist.irecv, buffer, owner, lab.group))
        for transfer in dist.batch_isend_irecv(transfers) if transfers else ():
            transfer.wait()
        return held.get(asked[place][lab.rank], buffer)

    missed = sum(models_of_all[lab.rank] not in held for models_of_all in asked)
    return _serve(lab, fetch, weights, batch, requests, copied=missed, copies=1)


@scenario.variant
def pooled(lab, models, layers, width, batch, requests):
    """All models once, in host memory that all ranks have mapped: nobody sends them."""
    asked = _asked(lab, models, requests)
    pool = _shared(lab, (models, layers, width, width))
    if lab.rank == 0:
        pool.copy_(_models(models, layers, width))
    dist.barrier(group=lab.group)
    on_gpu = lab.device.type == "cuda"
    if on_gpu:
        torch.cuda.check_error(
            torch.cuda.cudart().cudaHostRegister(pool.data_ptr(), pool.nbytes, 0)
        )
    buffer = torch.empty(layers, width, width, device=lab.device) if on_gpu else None

    def fetch(place):
        model = pool[asked[place][lab.rank]]
        return buffer.copy_(model, non_blocking=True) if on_gpu else model

    yield _serve(lab, fetch, pool, batch, requests, copied=requests if on_gpu else 0, copies=1)
    if on_gpu:
        torch.cuda.synchronize(lab.device)
        torch.cuda.check_error(torch.cuda.cudart().cudaHostUnregister(pool.data_ptr()))


@scenario.variant
def replicated(lab, models, layers, width, batch, requests):
    """All models on every rank: nothing moves, for as many copies as ranks."""
    weights = _models(models, layers, width).to(lab.device)
    asked = _asked(lab, models, requests)

    def fetch(place):
        return weights[asked[place][lab.rank]]

    return _serve(lab, fetch, weights, batch, requests, copied=0, copies=lab.ranks)


def _models(models, layers, width):
    """Weights that are the same on all ranks."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(models, layers, width, width, generator=generator) * (2 / width) ** 0.5


def _asked(lab, models, requests):
    """For each place in the order of requests, the model that each rank is asked for."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(models, (requests, lab.ranks), generator=generator).tolist()


def _shared(lab, shape):
    """A tensor in memory of all ranks, which is gone with the last of them."""
    file = os.memfd_create("model pool") if lab.rank == 0 else -1
    address = torch.tensor([os.getpid(), file], device=lab.device)
    dist.broadcast(address, 0, group=lab.group)
    process, number = address.tolist()
    count = torch.Size(shape).numel()
    pool = torch.from_file(f"/proc/{process}/fd/{number}", shared=True, size=count)
    dist.barrier(group=lab.group)
    if lab.rank == 0:
        os.close(file)
    return pool.view(shape)


def _serve(lab, fetch, weights, batch, requests, copied, copies):
    """`copied`: models that this rank copies in a step; `copies`: of all models, over all ranks."""
    width = weights.shape[-1]
    rows = torch.randn(requests, batch, width, device=lab.device)
    answers = torch.empty_like(rows)

    def step():
        for place in range(requests):
            answer = rows[place]
            for weight in fetch(place):
                answer = torch.relu(answer @ weight)
            answers[place] = answer

    copied_bytes = copied * weights[0].nbytes
    lab.report("MiB of models on all ranks", copies * weights.nbytes / MiB)
    lab.report("MiB copied per rank", copied_bytes / MiB)
    return Work(
        step, bytes=copied_bytes or None, items=lab.ranks * requests, inputs=rows, output=answers
    )
