"""Latency and throughput: batches serve more requests a second, and each may wait longer.

Throughput is requests a second, latency the time from a request's arrival to its answer. A model
reads all of its weights, in one series of launches, for one request as for sixteen together. So a
batch of sixteen takes far less than sixteen times as long as one request until arithmetic becomes
the limit, and throughput rises with its size. A step serves requests that are all waiting already,
so its time gives the maximum throughput.

That time does not say how long a request waits, so gpulab also serves requests in real time,
outside of the timed step: they arrive at random moments, whatever the server does (open loop), at
half and at twice the rate that `one_at_a_time` can serve. At the low load waiting for a full batch
is the cost: the first of sixteen waits for fifteen others. At the high load the queue of
`one_at_a_time` grows until requests stop coming, so its percentiles only say how long the test was,
while batches keep up.

`what_waits` (dynamic batching) takes the requests that are waiting, up to a full batch: one when it
is quiet, many under load. In the timed step it gains what `full_batches` gains: with all requests
waiting both run the same batches.

Latency counts from the moment at which a request was due. A client that waits for each answer
before its next request (closed loop) slows down with the server, and a clock that starts when the
server picks a request up leaves out the queue: both hide the waiting that overload causes
(coordinated omission). "From pick-up" shows it: an overloaded server looks as fast as an idle one.

The figures are of one short series each, without an interval: half of the requests stay within p50
and 99 % within p99, of 512 requests about the fifth longest. In production, limit the wait for a
full batch by a timeout, and load-test at the expected rate, not at the highest possible one.
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
    terms=("serving", "p99", "inference", "queueing"),
)
# seconds of a single request: measured once, so that all variants get requests at the same rate
_OF_ONE = {}


@scenario.variant
def one_at_a_time(lab, requests, width, layers, arrivals):
    """Each request is a batch of its own."""
    return _service(lab, requests, width, layers, arrivals, least=1, most=1)


@scenario.variant
def full_batches(lab, requests, batch, width, layers, arrivals):
    """The server waits until a batch is full."""
    return _service(lab, requests, width, layers, arrivals, least=batch, most=batch)


@scenario.variant
def what_waits(lab, requests, batch, width, layers, arrivals):
    """The server takes what is waiting, up to a full batch."""
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
