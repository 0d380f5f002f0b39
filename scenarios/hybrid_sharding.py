"""Hybrid sharding: shard inside a node, replicate between nodes.

**In short:** sharding trades traffic for memory, and hybrid sharding keeps that traffic inside a node, where links are fast.

```text
                 node 0          node 1
                 rank 0  rank 1  rank 2  rank 3    between nodes
replicate        1234    1234    1234    1234      all gradients
full_shard       1       2       3       4         weights twice,
                                                   all gradients
hybrid_shard     12      34      12      34        gradients of
                  └───────┘       └───────┘        equal parts
                  weights, inside a node
                 1234: the quarters of each layer that a rank keeps
```

| variant | what changes | expected (two H100s, NVLink) | why |
|---|---|---|---|
| `replicate` | every rank keeps everything (data parallelism, DDP) | baseline, 2.07 ms, 384 MiB kept | gradients are all-reduced |
| `full_shard` | each rank keeps its part of every layer (FSDP, ZeRO-3) | 0.957x, 192 MiB kept | half as many bytes again: weights are gathered twice, gradients scattered |
| `hybrid_shard` | the same inside a node; nodes are copies | 0.963x, 192 MiB kept | two ranks are one node, so it is `full_shard` |

## What a rank keeps and sends

fp32 with momentum takes three numbers a weight: itself, its gradient, its momentum. With W bytes of
weights, n ranks and s of them to a copy, a rank keeps

    3 W / s, and one more layer while it is in use

and sends and receives

    replicate       2 W (n-1)/n
    full_shard      3 W (n-1)/n
    hybrid_shard    3 W (s-1)/s + 2 W/s (n/s-1)/(n/s)

(a little less: the first layer is not gathered for the backward). All take the same step: gpulab
gathers the new weights on every rank and compares them.

## Several hosts, not measured here

With h hosts, s = n/h ranks in each, these bytes leave a host in a step:

    replicate, one ring of all ranks     2 W (n-1)/n
    full_shard, one ring of all ranks    3 W (n-1)/n
    hybrid_shard                         2 W (h-1)/h

For 2 hosts of 2 ranks: 1.5 W, 2.25 W and W. The s ranks of a host share them: with a network card
each, a card carries 1/s. An all-reduce in levels (scatter inside, reduce between, gather inside)
sends 2 W (h-1)/h for `replicate` too. Then hybrid sharding saves no traffic over it, only memory.

## Where it does not help

Sharding always moves more than replicating, so no size makes it faster here: nothing overlaps. It is
a way to fit, and the memory is what to look at. FSDP gathers the next layer while this one computes.
Where that hides the traffic, sharding costs the memory of two layers.

A node here is a name for `node` ranks of one machine: every link is alike, so time follows all
bytes. To see the three apart takes four GPUs (`--set ranks=4`), and links between nodes that are ten
times slower. On a CPU each call wakes every rank: expect `replicate` first, `full_shard` last.
"""

from functools import cache

import torch
import torch.distributed as dist

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={"ranks": 2, "node": 2, "width": 4096, "layers": 2, "batch": 256},
    cpu={"ranks": 4, "width": 512, "layers": 3, "batch": 32},
    smoke={"width": 64, "layers": 2, "batch": 8},
    ranks="ranks",
    claim="ZeRO: sharding everything needs 1/n of the memory, for 1.5 times the communication",
    terms=("fsdp", "hsdp", "zero", "reduce-scatter", "multi-node"),
)


@scenario.variant
def replicate(lab, node, width, layers, batch):
    """Every rank keeps everything, as in DDP; gradients are all-reduced."""
    return _train(lab, node, width, layers, batch, holders=1)


@scenario.variant
def full_shard(lab, node, width, layers, batch):
    """Each rank keeps its part of every layer alone, and gathers the rest when it is needed."""
    return _train(lab, node, width, layers, batch, holders=lab.ranks)


@scenario.variant
def hybrid_shard(lab, node, width, layers, batch):
    """Sharded inside a node alone: its ranks gather, and gradients are summed between nodes."""
    return _train(lab, node, width, layers, batch, holders=min(node, lab.ranks))


_LEARNING_RATE = 0.2
"""Over the width, as the slope of a layer grows with it: several times as much, and training
diverges, so that NaNs are timed.
"""
_MOMENTUM = 0.9
# named anew in later versions of torch, which warn of the older names
_gather_single = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_scatter_single = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def _train(lab, node, width, layers, batch, holders):
    """`holders`: how many ranks hold one copy of the weights between them."""
    if lab.ranks % holders or width % holders:
        lab.skip(f"{lab.ranks} ranks and a width of {width} are no multiples of {holders}")
    copy = _own_group(lab.ranks, holders, step=1)
    same_part = _own_group(lab.ranks, lab.ranks // holders, step=holders)
    weights = _own_parts(lab, width, layers, holders)
    gradients = [torch.zeros_like(weight) for weight in weights]
    momenta = [torch.zeros_like(weight) for weight in weights]
    rows = torch.randn(batch, width, device=lab.device)
    targets = torch.rand(batch, width, device=lab.device)

    def gathered(part):
        if holders == 1:
            return part
        whole = torch.empty(width, width, device=lab.device)
        _gather_single(whole, part, group=copy)
        return whole

    def sum_into(own, gradient):
        if holders == 1:
            own.copy_(gradient)
        else:
            _scatter_single(own, gradient, group=copy)
        if holders < lab.ranks:
            dist.all_reduce(own, group=same_part)

    # Rows that a rank holds in every variant: only the first rank and the last have some.
    rows_of_rank = width // lab.ranks
    common = {0: slice(None, rows_of_rank), lab.ranks - 1: slice(-rows_of_rank, None)}
    shown = [weight[common[lab.rank]] for weight in weights if lab.rank in common]

    def step():
        activations = [rows]
        for weight in weights:
            activations.append(torch.relu(activations[-1] @ gathered(weight)))
        slope = (activations[-1] - targets) / (batch * lab.ranks)
        for layer in reversed(range(layers)):
            slope = slope * (activations[layer + 1] > 0)
            sum_into(gradients[layer], activations[layer].T @ slope)
            if layer:
                slope = slope @ gathered(weights[layer]).T
        for weight, gradient, momentum in zip(weights, gradients, momenta, strict=True):
            momentum.mul_(_MOMENTUM).add_(gradient)
            weight.sub_(momentum, alpha=_LEARNING_RATE / width)
        return [activations[-1], *shown]

    kept = sum(tensor.nbytes for tensor in [*weights, *gradients, *momenta])
    inside, between = _bus_bytes(4 * width**2, layers, holders, lab.ranks // holders)
    lab.report("MiB kept per rank", kept / MiB)
    lab.report("MiB out of a node", _leaving(lab.ranks, node, holders, inside, between) / MiB)
    return Work(
        step,
        bytes=round(inside + between),
        inputs=[rows, targets],
        state=[*weights, *gradients, *momenta],
    )


def _own_parts(lab, width, layers, holders):
    """This rank's rows of each layer, of weights that are the same on all ranks."""
    generator = torch.Generator(lab.device).manual_seed(0)
    parts = []
    for _ in range(layers):
        whole = torch.randn(width, width, generator=generator, device=lab.device)
        whole *= (2 / width) ** 0.5
        parts.append(whole.chunk(holders)[lab.rank % holders].clone())
    return parts


@cache  # a new one takes NCCL half a second
def _own_group(ranks, size, step):
    """The group that this rank is in, of every `step`-th rank; every rank makes all groups, in the
    same order.
    """
    firsts = [rank for rank in range(ranks) if rank % (size * step) < step]
    groups = [list(range(first, first + size * step, step)) for first in firsts]
    return dist.new_subgroups_by_enumeration(groups)[0]


def _bus_bytes(layer_bytes, layers, holders, copies):
    """What a rank sends in a step inside a copy and between copies, as NCCL's tests count it."""
    inside = (3 * layers - 1) * layer_bytes * (holders - 1) / holders
    between = 2 * layers * layer_bytes / holders * (copies - 1) / copies
    return inside, between


def _leaving(ranks, node, holders, inside, between):
    """Bytes that leave a node where each group is a ring: one link of a ring does."""
    if ranks <= node:
        return 0
    if holders == node:
        return node * between
    return inside + between
