"""Latency and throughput: batches serve more requests a second, and each may wait longer.

**In short:** a batch shares one reading of the weights; take what is waiting, and no request waits for a batch to fill.

```text
              time ───────────────────────▶   ▸ a request arrives
quiet         ▸  ▸    ▸ ▸    ▸    ▸     ▸
one_at_a_time 1  1    1 1    1    1     1     each at once
full_batches  ·····························   waits until 16 came
what_waits    1  1    1 1    1    1     1     each at once

busy          ▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸▸
one_at_a_time 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1   its queue grows
what_waits    1 2  3  3  3  3  3  3  3  3     it keeps up
              1, 2, 3: a batch of so many begins
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `one_at_a_time` | each request is a batch of its own | baseline, 7.0 k requests/s; p50 quiet 0.16 ms, busy 17 ms | reads all weights for one answer; when busy its queue grows |
| `full_batches` | waits until 16 have come | 4.7x the requests/s (CPU: 8.7-9.7x); p50 quiet 2.8 ms, busy 1.1 ms | reads the weights once for 16; when quiet the first waits for fifteen others |
| `what_waits` | takes what waits, at most 16 (dynamic batching) | 4.7x, as `full_batches`; p50 quiet 0.18 ms, busy 0.57 ms | one when it is quiet, many when it is busy |

## Two measures

Throughput is requests a second, latency the time from a request's arrival to its answer. For one
request or for sixteen, a model reads all its weights, in one series of launches:

    time of a batch = launches + weights + requests * arithmetic

As long as the last term is small, throughput rises with the batch. In the timed step all requests
wait already, so its time gives the maximum throughput. There `what_waits` runs the batches of
`full_batches`.

## How latency is measured

gpulab also serves requests in real time, outside of the timed step. They arrive at random,
whatever the server does (open loop): *quiet* at half the rate that `one_at_a_time` can serve,
*busy* at twice that rate. Beyond its rate a queue grows until requests stop coming. So its
percentiles only say how long the test was.

## What hides the waiting

Latency counts from the moment at which a request was due. A client that waits for each answer
(closed loop) slows down with the server. A clock that starts when the server picks a request up
leaves out the queue. Both hide what overload does (*coordinated omission*). "From pick-up" shows
it: `one_at_a_time`, when busy, looks as fast as when idle.

## How far the figures go

Each is of one short series, without an interval. Half of the requests stay within p50, 99 % within
p99: of 512 about the fifth longest. In production, limit the wait for a full batch by a timeout.
Load-test at the expected rate, not at the highest possible one. Where arithmetic limits one request
already, n together take n times as long, and batches gain nothing.
"""

from bisect import bisect_right
from statistics import median, quantiles
from time import perf_counter

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="device memory",
    params={"requests": 64, "batch": 16, "width": 4096, "layers": 4, "arrivals": 512},
    cpu={"width": 512, "layers": 3, "arrivals": 192},
    smoke={"requests": 8, "batch": 4, "width": 64, "layers": 2, "arrivals": 32},
    sweep={"batch": (2, 4, 8, 16, 32)},
    item="request",
    claim=(
        "our own measurement: 8.7-9.7x the requests/s in batches of 16 on a CPU, 4.7x on an H200"
    ),
    no_effect_reason="one request is limited by arithmetic already, so that n together take n times as long",
    terms=("serving", "p99", "inference", "queueing", "dynamic batching"),
)
# seconds of a single request: measured once, so that all variants get requests at the same rate
_OF_ONE = {}


@scenario.variant
def one_at_a_time(lab, requests, width, layers, arrivals):
    """Each request is a batch of its own."""
    return _service(lab, requests, width, layers, arrivals, least=1, most=1)


@scenario.variant
def full_batches(lab, requests, batch, width, layers, arrivals):
    """The server waits until a batch is full, and serves it at once."""
    return _service(lab, requests, width, layers, arrivals, least=batch, most=batch)


@scenario.variant
def what_waits(lab, requests, batch, width, layers, arrivals):
    """The server takes what is waiting, up to a full batch, and does not wait for more."""
    return _service(lab, requests, width, layers, arrivals, least=1, most=batch)


@torch.no_grad()
def _service(lab, requests, width, layers, arrivals, least, most):
    weights = [
        torch.randn(width, width, device=lab.device) / (width / 2) ** 0.5 for _ in range(layers)
    ]
    given, gaps = torch.randn(requests, width), -torch.rand(arrivals).log()  # of a Poisson process
    answers = torch.empty_like(given)

    @torch.no_grad()
    def serve(first, last):
        """From the host to the host: a request is served when its answer has arrived."""
        with lab.useful():
            rows = given[first:last].to(lab.device)
            for weight in weights:
                rows = (rows @ weight).relu_()
            answers[first:last] = rows.cpu()

    def step():
        for first in range(0, requests, most):
            serve(first, min(first + most, requests))
        return answers

    due = gaps.cumsum(0)
    for count in range(most, 0, -1):  # every size, so that none is set up under load
        seconds = _seconds(serve, count)  # in the end, of one
    service_s = _OF_ONE.setdefault((lab.device, width, layers), seconds)
    for load, times in (("low", 0.5), ("high", 2.0)):
        moments = (due * service_s / times).tolist()
        latency, busy = _latencies(serve, moments, least, most)
        _report(lab, f"ms at {load} load", latency)
        if load == "high":
            _report(lab, "ms at high load from pick-up", busy)
    lab.report("requests/s at low load", round(0.5 / service_s))

    passes = -(-requests // most)
    return Work(
        step,
        bytes=passes * sum(weight.nbytes for weight in weights) + 2 * given.nbytes,
        flops=2 * requests * sum(weight.numel() for weight in weights),
        dtype="fp32",
        items=requests,
        inputs=(given, *weights),
    )


def _seconds(serve, count):
    """The time in which so many requests are served."""
    times = []
    for _ in range(10):
        started = perf_counter()
        serve(0, count)
        times.append(perf_counter() - started)
    return median(times)


def _latencies(serve, moments, least, most):
    """Serve requests that are due at these moments; their seconds since then, and since they were
    taken up.
    """
    latency, busy, started = [], [], perf_counter()
    while (served := len(latency)) < len(moments):
        picked = perf_counter() - started
        count = min(bisect_right(moments, picked) - served, most)
        if count < min(least, len(moments) - served):
            continue  # it waits for more to arrive
        serve(0, count)
        ended = perf_counter() - started
        latency += [ended - moment for moment in moments[served : served + count]]
        busy += [ended - picked] * count
    return latency, busy


def _report(lab, what, seconds):
    percentiles = quantiles(seconds, n=100)
    for percent in (50, 99):
        lab.report(f"p{percent} {what}", round(1e3 * percentiles[percent - 1], 3))
