"""Model pool: one copy of every model, where all processes can read it.

A service offers more models than one process can keep, and each request names its model. Two ranks
serve `requests` requests each in a step, of `models` models that are the same for all. `on_demand`
keeps each model on one rank, and a rank that is asked for another one's model has it sent: a copy
for each such request. `pooled` keeps all models in one piece of shared memory, which every process
maps into its own: as many bytes in all, and nobody has to be asked. `replicated` keeps all models
on every rank, which is the fastest and takes n times the memory.

A request of `on_demand` for a model on another rank moves W bytes of weights, and that over the
bandwidth of the link is its least time: (n-1)/n of all requests, where they are spread evenly. On a
CPU a pool has no link at all. Weights are read where they lie, as a rank's own are, so expect
`pooled` and `replicated` to be equal, and `on_demand` several times slower: sent bytes are copied
into a socket and out of it, and both ranks are busy with that.

On a GPU the pool is in host memory, page-locked so that the copy engine can read it, and every
request copies its model over PCIe; `on_demand` has it sent from the memory of the other GPU. Over
NVLink, five times as fast as PCIe, expect `on_demand` to be faster than `pooled` (2.7x on two
H100s, and `replicated` 2.5x faster still); between GPUs with nothing but PCIe the two are alike.
The pool is then what it is in serving systems: the place for all models that no GPU has room for,
of which a GPU keeps those that are asked for most.

A pool is shared: whoever writes to it changes the model of everyone. And a rank that computes with
another model than was asked for is as fast as ever, so the answers are compared, on every rank.
"""

import os

import torch
import torch.distributed as dist

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={"ranks": 2, "models": 8, "layers": 2, "width": 2048, "batch": 16, "requests": 4},
    cpu={"width": 512, "batch": 4},
    smoke={"models": 4, "width": 64},
    ranks="ranks",
    item="request",
    claim="torch.multiprocessing: what is in shared memory goes to other processes without any copies",
    terms=("shared memory between processes",),
)


@scenario.variant
def on_demand(lab, models, layers, width, batch, requests):
    """Each model on one rank, which sends it to the rank that is asked for it."""
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
    """All models once, in memory that all ranks share."""
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
    """All models on every rank."""
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
