"""KV cache over several ranks: move the query to the pages, not the pages to the query.

Generating a token reads the keys and values of all tokens before it. Where many requests begin with
the same long document, its cache is the same for all, and can be kept once in place of once on
every rank. Here each rank answers questions of its own about one document of `pages` pages of
`page` tokens, and in every step rank 0 adds a token to it, which all have to see.

`local` keeps the whole cache on every rank. It is read at the speed of memory; the new token has to
be written to every copy, or a rank answers from a stale page. `remote_pages` keeps each page on one
rank: 1/n of the memory, or a document n times as long. Each layer's pages are gathered when they
are needed, which is a real read of the others' memory over the link, and dropped afterwards; the
new token is written once, by the rank that has its page. `remote_attention` leaves the pages where
they are: every rank attends to its own pages for the questions of all ranks, and sends back what it
found with the logarithm of its sum of weights. Attention over parts is the mean of theirs, weighted
by these sums, so the answer is the same. Only questions and answers are sent.

With C bytes of cache and n ranks, a rank sends C (n-1)/n in a step of `remote_pages`, and that over
the bandwidth of the link is the least time; `local` reads C from memory. Between two GPUs the link
is five to fifty times slower than memory, and so is a step that has to wait for all pages. Expect
`remote_pages` last by far and `remote_attention` near `local`: each rank computes for all, but on
1/n of the pages, and what it sends does not grow with the document. On two H100s over NVLink, with
262,144 tokens, `remote_pages` is 0.21x and `remote_attention` 1.15x. What remains are two small
collectives a layer, of which each costs its latency: with a short document that is all, and it is
what `--sweep pages` shows.

On a CPU, link and memory are the same memory, but a byte that is sent is copied several times, and
the order is the same.

Pages gathered while the layer before still computes cost less; never less than C over the link.
Remote pages are worth it where they come seldom: fetched once, then kept, as for a prefix that is
read by many tokens. Then they are a cache that has to be told of new tokens again.
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
    terms=("kv cache", "paged attention", "decode"),
)


@scenario.variant
def local(lab, layers, heads, width, pages, page, questions):
    """Every rank has the whole cache; a new token is sent to all."""
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
    """Each page on one rank; a layer's pages are gathered before it attends to them."""
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
    """Each page on one rank, which attends to it for all; answers are sent."""
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
