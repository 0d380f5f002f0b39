"""Serving batches: fill a place as soon as its request ends, not when all have ended.

**In short:** requests need different numbers of tokens, so let new ones join between two passes.

```text
                 passes ──▶     a letter: a token of that request
one_by_one       aaaaabbcdddeeffffghh         20 passes of 1
static_batches   aaaaa│ee··                    9 passes of up to 4
                 bb···│ffff
                 c····│g···     ·: an empty place
                 ddd··│hh··
continuous       aaaaa·                        6 passes of up to 4
                 bbffff
                 ceeg··
                 dddhh·
```

| variant | what changes | expected tokens in a pass (GPU sizes, counted) | why |
|---|---|---|---|
| `one_by_one` | a pass has one request | 1.0 | every token reads all weights for itself |
| `static_batches` | up to 8 begin together, others when all have ended | 3.2; 2.7x as fast on an H200, where 8 rows take longer than one | the longest of 8 requests keeps the places of the others empty |
| `continuous` | a place is filled before every pass | 7.5; 5.5x | only the end of the queue leaves places empty |

## What is timed

A step serves requests that all wait already, so its tokens/s are the most that a server can do. All
variants give the same tokens, the likeliest ones (greedy). The decoder sees the last 8 tokens and
has no KV cache. Lengths are drawn once: many are short, few are up to four times `tokens`.

    gain = tokens in a pass * time of 1 row / time of so many rows

A pass of several rows adds up in another order than a pass of one. In fp16 two tokens are often
near enough for that to exchange them, so this decoder computes in fp64.

## How long requests wait

Outside of the timed step requests arrive at random moments, whatever the server does (open loop).
The low load is half of what `one_by_one` can serve, the high one `load` times as much. Latency
counts from the moment at which a request was *due*, to its last token. A server that cannot keep up
has a queue that grows until requests stop coming: its percentiles only say how long the test was.
In static batches a request waits for the longest of the batch before its own, in continuous ones
for a place. Each figure is of one short series, without an interval.

## Where it does not help

Where 8 rows take 8 times as long as one, nothing is gained; on a CPU rows share the cost of calls.
With equal lengths static batches have no empty places. A large model also reads a prompt, a long
pass that delays all others, and its cache limits the places.

## What the source says

The quick-start guide names throughput and p99 of a server, and no factor.
"""

from statistics import mean, median, quantiles
from time import perf_counter

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="device memory",
    params={
        "requests": 64,
        "batch": 8,
        "tokens": 4,
        "width": 2048,
        "layers": 2,
        "arrivals": 128,
        "load": 4.0,
    },
    cpu={"requests": 32, "tokens": 4, "width": 128, "layers": 1, "arrivals": 64, "load": 2.0},
    smoke={
        "requests": 8,
        "batch": 4,
        "tokens": 3,
        "width": 64,
        "layers": 1,
        "arrivals": 16,
        "load": 2.0,
    },
    sweep={"batch": (2, 4, 8, 16, 32)},
    ladder=True,
    item="token",
    no_effect_reason="one row is limited by arithmetic already, so that n rows take n times as long",
    claim="quick-start guide: throughput and p99 of a server in batches; no factor",
    terms=("continuous batching", "in-flight batching", "llm serving", "vllm", "p99", "decode"),
)
_VOCABULARY = 512
_WINDOW = 8
# seconds of a token alone: measured once, so that all variants get requests at the same rate
_OF_ONE = {}
_TIMED = set()


@scenario.variant
def one_by_one(lab, requests, tokens, width, layers, arrivals, load):
    """A pass has one request, and the next one begins when it has all of its tokens."""
    return _service(lab, requests, tokens, width, layers, arrivals, load, 1, refills=True)


@scenario.variant
def static_batches(lab, requests, batch, tokens, width, layers, arrivals, load):
    """Up to `batch` requests begin together, and others when all of these have ended."""
    return _service(lab, requests, tokens, width, layers, arrivals, load, batch, refills=False)


@scenario.variant
def continuous(lab, requests, batch, tokens, width, layers, arrivals, load):
    """Before every pass waiting requests take the places of those that have ended, where
    `static_batches` leaves these empty.
    """
    return _service(lab, requests, tokens, width, layers, arrivals, load, batch, refills=True)


def _service(lab, requests, tokens, width, layers, arrivals, load, batch, refills):
    decoder = _Decoder(lab, width, layers)
    prompts = torch.randint(_VOCABULARY, (max(requests, arrivals), _WINDOW))
    lengths = _lengths(len(prompts), tokens)
    room = max(lengths)

    def serve(due):
        counted = lengths[: len(due)]
        return _serve(lab, decoder, prompts[: len(due)].tolist(), counted, due, batch, refills)

    def step():
        texts, _, _ = serve([0.0] * requests)  # all of them wait already
        return torch.tensor([text + [-1] * (room - len(text)) for text in texts])

    model, load_of = (width, layers), (batch, refills, width, layers, arrivals, load)
    if model not in _OF_ONE:
        _OF_ONE[model] = decoder.seconds_of_one()
    for count in range(batch, 0, -1):  # every size, so that none is set up under load
        decoder.choose(prompts[:count].tolist())
    if load_of not in _TIMED:  # once a process: requests arrive for a second
        _TIMED.add(load_of)
        gaps = -torch.rand(arrivals).log()  # of a Poisson process
        request_s = _OF_ONE[model] * mean(lengths[:arrivals])
        for name, times in (("low", 0.5), ("high", load)):
            _, latency, _ = serve((gaps.cumsum(0) * request_s / times).tolist())
            percentiles = quantiles(latency, n=100, method="inclusive")
            lab.report(f"p50 ms at {name} load", round(1e3 * percentiles[49], 3))
            lab.report(f"p99 ms at {name} load", round(1e3 * percentiles[98], 3))
    total = sum(lengths[:requests])
    _, _, passes = serve([0.0] * requests)
    lab.report("tokens per pass", round(total / passes, 2))
    return Work(
        step,
        bytes=passes * decoder.nbytes,
        flops=2 * total * decoder.numel,
        dtype="fp64",
        items=total,
        inputs=(prompts, *decoder.weights),
    )


class _Decoder:
    """Chooses the next token by the last ones. In fp64: other sums would choose other tokens where
    two are nearly as likely, and passes of several rows add up in another order.
    """

    def __init__(self, lab, width, layers):
        def weights(rows, columns):
            values = torch.randn(rows, columns, device=lab.device, dtype=torch.float64)
            return values.div_(rows**0.5)

        self.width = width
        self.embedding = weights(_VOCABULARY, width // _WINDOW).mul_(_VOCABULARY**0.5)
        self.layers = [(weights(width, width), weights(width, width)) for _ in range(layers)]
        self.output = weights(width, _VOCABULARY)
        read = [self.output, *(matrix for pair in self.layers for matrix in pair)]
        self.weights = [self.embedding, *read]
        self.nbytes = sum(matrix.nbytes for matrix in read)
        self.numel = sum(matrix.numel() for matrix in read)

    @torch.no_grad()
    def choose(self, windows):
        """The next token of each: one pass, from the host to the host."""
        rows = self.embedding[torch.tensor(windows, device=self.output.device)].flatten(1)
        for up, down in self.layers:
            rows = rows + (self._normal(rows) @ up).relu_() @ down
        return (self._normal(rows) @ self.output).argmax(-1).tolist()

    def seconds_of_one(self):
        """The usual time of a pass for one request."""
        times = []
        for _ in range(100):
            started = perf_counter()
            self.choose([[0] * _WINDOW])
            times.append(perf_counter() - started)
        return median(times)

    def _normal(self, rows):
        return torch.nn.functional.layer_norm(rows, (self.width,))


def _lengths(requests, tokens):
    """Tokens of each request: many are short, few are long. Always the same ones."""
    draws = -torch.rand(requests, generator=torch.Generator().manual_seed(0)).log()
    return (draws * tokens).ceil().clamp(1, 4 * tokens).int().tolist()


def _serve(lab, decoder, prompts, lengths, due, batch, refills):
    """(tokens of each request; seconds of each, from when it was due to its last token; passes).
    `refills`: requests begin whenever there is a place, not only when all places are empty.
    """
    texts = [[] for _ in lengths]
    latency, active, begun, passes, started = [], [], 0, 0, perf_counter()
    while len(latency) < len(lengths):
        now = perf_counter() - started
        free = batch - len(active) if refills or not active else 0
        while free and begun < len(lengths) and due[begun] <= now:
            active.append(begun)
            begun += 1
            free -= 1
        if not active:
            continue  # nobody is there
        with lab.useful():
            chosen = decoder.choose([(prompts[each] + texts[each])[-_WINDOW:] for each in active])
        passes += 1
        ended = perf_counter() - started
        for each, token in zip(active, chosen, strict=True):
            texts[each].append(token)
            if len(texts[each]) == lengths[each]:
                latency.append(ended - due[each])
        active = [each for each in active if len(texts[each]) < lengths[each]]
    return texts, latency, passes
