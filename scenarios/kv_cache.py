"""KV cache over several ranks: move the query to the pages, not the pages to the query.

**In short:** a question and its answer are small and a cache is large, so send the question to the rank that has the pages.

```text
                rank 0                    rank 1
local           ████  q                   ████  q    cache twice
remote_pages    ██░░  q   ◀── pages ──▶   ░░██  q    half of it each
remote_         ██  q q   ◀──  q, a ──▶   ██  q q    half of it each
attention

                █ a page that the rank keeps     q a question
                ░ a page that it receives, and drops    a an answer
```

| variant | what changes | expected (two H100s, NVLink) | why |
|---|---|---|---|
| `local` | every rank keeps the whole cache | baseline, 3.41 ms | reads C bytes at the speed of memory; a new token goes to every copy |
| `remote_pages` | a page is on one rank; a layer's pages are gathered | 0.21x | C (n-1)/n bytes over the link, five to fifty times slower than memory |
| `remote_attention` | a page is on one rank, which attends to it for all | 1.15x | each computes for all, on 1/n of the pages; only questions and answers travel |

## One document, many questions

Generating a token reads the keys and values of all tokens before it: the cache. Many requests begin
with the same long document, whose cache can be kept once. Each rank answers questions of its own
about one document of `pages` pages of `page` tokens. In every step rank 0 adds a token, which all
have to see; who misses it answers from a stale page.

## Why the answer stays the same

Attention over parts is the mean of theirs. Each is weighted by its sum of weights, so a rank also
sends the logarithm of that. What is sent does not grow with the document.

## What each sends and keeps

With C bytes of cache and n ranks, a rank sends in a step

    remote_pages         C (n-1)/n
    remote_attention     questions and answers

and keeps C/n, or serves a document n times as long. The figures are for 262,144 tokens.

## Where it does not help

`remote_attention` has two small collectives a layer, and each costs its latency. With a short
document that is all: see `--sweep pages`. On a CPU link and memory are the same memory, but a sent
byte is copied several times. The order is the same.

Gathering pages while the layer before computes makes `remote_pages` cheaper, never less than its
bytes over the link. Remote pages pay where they come seldom: fetched once and kept, as for a prefix
that many tokens read. Then they are a cache that has to be told of new tokens.
"""

import torch
import torch.distributed as dist

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={
        "ranks": 2,
        "layers": 2,
        "heads": 8,
        "width": 128,
        "pages": 1024,
        "page": 256,
        "questions": 4,
    },
    cpu={"heads": 4, "width": 64, "pages": 64, "page": 64},
    smoke={"layers": 2, "heads": 2, "width": 16, "pages": 8, "page": 8},
    sweep={"pages": (16, 64, 256, 1024)},
    ranks="ranks",
    ladder=True,
    item="answer",
    claim="arXiv 2606.01502: routing the query is often cheaper than moving the cache",
    terms=("kv cache", "paged attention", "decode", "prefix cache", "llm"),
)


@scenario.variant
def local(lab, layers, heads, width, pages, page, questions):
    """Every rank keeps the whole cache, and reads its own; a new token is sent to all."""
    cache, queries, fresh = _make(lab, layers, heads, width, pages, page, questions)
    out = torch.empty_like(queries)

    def step():
        dist.broadcast(fresh, 0, group=lab.group)
        cache[..., 0, :] = fresh
        for layer in range(layers):
            out[layer] = _attend(queries[layer], cache[layer], page)[0]

    return _work(lab, step, cache, queries, fresh, out, sent=fresh.nbytes)


@scenario.variant
def remote_pages(lab, layers, heads, width, pages, page, questions):
    """Each page on one rank, not on all: a layer's pages are gathered before it attends to them."""
    cache, queries, fresh = _make(lab, layers, heads, width, pages, page, questions, lab.ranks)
    out = torch.empty_like(queries)

    def step():
        if lab.rank == 0:
            cache[..., 0, :] = fresh
        for layer in range(layers):
            found = _attend(queries[layer], _gathered(lab, cache[layer]), page)
            out[layer] = _merge(*found, dim=0)

    return _work(lab, step, cache, queries, fresh, out, sent=cache.nbytes * (lab.ranks - 1))


@scenario.variant
def remote_attention(lab, layers, heads, width, pages, page, questions):
    """Each page on one rank, which attends to it for all: questions and answers are sent, no pages."""
    cache, queries, fresh = _make(lab, layers, heads, width, pages, page, questions, lab.ranks)
    out = torch.empty_like(queries)

    def step():
        if lab.rank == 0:
            cache[..., 0, :] = fresh
        for layer in range(layers):
            everyones = _gathered(lab, queries[layer]).movedim(0, 1).flatten(1, 2)
            found = torch.cat(_attend(everyones, cache[layer], page), -1)
            answers = found.unflatten(1, (lab.ranks, questions)).movedim(1, 0).contiguous()
            parts = torch.empty_like(answers)
            dist.all_to_all_single(parts, answers, group=lab.group)
            out[layer] = _merge(*parts.split((width, 1), -1), dim=0)

    sent = (2 * queries.nbytes + 4 * queries.numel() // width) * (lab.ranks - 1)
    return _work(lab, step, cache, queries, fresh, out, sent)


# named anew in later versions of torch, which warn of the older name
_gather_single = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def _make(lab, layers, heads, width, pages, page, questions, holders=1):
    """(this rank's part of a cache that is the same on all ranks, its questions, the new token)."""
    if pages % holders:
        lab.skip(f"{pages} pages are no multiple of {holders} ranks")
    generator = torch.Generator(lab.device).manual_seed(0)
    parts = []
    for _ in range(layers):  # one at a time: the whole cache need not fit
        shape = 2, heads, pages * page, width
        of_layer = torch.randn(shape, generator=generator, device=lab.device)
        parts.append(of_layer.chunk(holders, 2)[lab.rank % holders].clone())
    queries = torch.randn(layers, heads, questions, width, device=lab.device)
    fresh = torch.randn(layers, 2, heads, width, device=lab.device)
    return torch.stack(parts), queries, fresh


def _gathered(lab, own):
    """Those of all ranks, by rank."""
    everyones = torch.empty(lab.ranks, *own.shape, device=lab.device)
    _gather_single(everyones.flatten(0, 1), own, group=lab.group)
    return everyones


def _attend(queries, cache, page):
    """What the queries find in a part of the cache, and the logarithm of their sum of weights. Page
    by page: a few queries and heads alone keep a small part of a GPU busy.
    """
    keys, values = cache.unflatten(-2, (-1, page)).unbind(-5)
    scores = queries[..., None, :, :] @ keys.mT / queries.shape[-1] ** 0.5
    weight = torch.logsumexp(scores, -1, keepdim=True)
    found = torch.softmax(scores, -1) @ values
    return _merge(found, weight, dim=-3), torch.logsumexp(weight, -3)


def _merge(found, weight, dim):
    """Attention over all parts, from what was found in each."""
    return (found * torch.softmax(weight, dim)).sum(dim)


def _work(lab, step, cache, queries, fresh, out, sent):
    lab.report("MiB of cache per rank", cache.nbytes / MiB)
    lab.report("MiB sent per rank", sent / MiB)
    return Work(
        step,
        bytes=sent,
        items=lab.ranks * queries.shape[2],
        inputs=[queries, fresh],
        output=out,
    )
