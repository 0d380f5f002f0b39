"""A stand-in of the sampler, for machines without a GPU: it answers as the sampler does, and its
samples are those of an H200, repeated for as long as the steps run. Started as the counters'
Python: `replayed_sampler.py -I sampler.py`. REPLAYED: "dies", "denied" or "empty".
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

RECORDED = json.loads(Path(__file__).with_name("samples.json").read_text())
METRICS = RECORDED["metrics"]
HOW = os.environ.get("REPLAYED", "")
PASSES = {"since": 0, "metrics": [], "count": 0}


def supported(metrics, interval_ns):
    if HOW == "denied":
        raise PermissionError("Insufficient privileges for PM sampling")
    return [metric for metric in metrics if metric in METRICS]


def check(metrics, interval_ns):
    """Five copies of a GiB, as they were; and over PCIe a quarter more than was read."""
    places = [2 + METRICS.index(metric) for metric in metrics]
    copied = [[*each[:2], *(each[at] for at in places)] for each in RECORDED["copy"]["samples"]]
    link = [1, 2, *(125 if metric == "pcie__read_bytes.sum" else 100 for metric in metrics)]
    return {"inside": [5 << 30, copied], "link": [100, [link]]}


def start(metrics, interval_ns):
    PASSES.update(since=time.time_ns(), metrics=metrics, count=PASSES["count"] + 1)
    if HOW == "dies" and PASSES["count"] == 2:
        os.kill(os.getpid(), signal.SIGSEGV)


def stop(decode=True):
    if not decode:
        return []
    recorded = RECORDED["copy" if PASSES["count"] < 10 else "bf16_product"]
    busy = [each for each in recorded["samples"] if each[0] >= 3e5 and each[1] <= recorded["end"]]
    places = [2 + METRICS.index(metric) for metric in PASSES["metrics"]]
    samples = [[0, PASSES["since"], *[0] * len(places)]]
    while samples[-1][1] < time.time_ns() and HOW != "empty":
        each = busy[len(samples) % len(busy)]
        begin = samples[-1][1]
        samples.append([begin, begin + each[1] - each[0], *(each[place] for place in places)])
    return samples


def main():
    assert sys.argv[1] == "-I"
    assert json.loads(sys.stdin.readline()).keys() == {"device"}
    print(json.dumps({"answer": "13.4.0"}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            said = {"answer": globals()[asked.pop("do")](**asked)}
        except PermissionError as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
