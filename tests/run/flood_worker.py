"""A worker that measures 10,000 blocks a second for the given seconds: the lab's own recorder, channel and clock."""

import os
import sys
import time

import msgspec

from gpulab.model.events import WorkerDone
from gpulab.model.request import RunRequest
from gpulab.model.scenario import Work
from gpulab.worker.build import Build
from gpulab.worker.channel import Channel
from gpulab.worker.clock import Clock
from gpulab.worker.ledger import Ledger
from gpulab.worker.recorder import Recorder

RATE, ROUNDS = 10_000, 100


def main():
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=RunRequest)
    channel = Channel(int(sys.argv[1]))
    recorder = Recorder(channel, Ledger(("a", "b")), {"a": 1.0, "b": 1.0})
    clock = Clock(None)
    build = Build(Work(lambda: None), 0.0, None)
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < request.time_s:
        for number in range(ROUNDS):
            for name in ("a", "b"):
                recorder.add(number, name, clock.block(build, 1000))
                done += 1
            recorder.pump()
        recorder.end_epoch()
        time.sleep(max(0.0, started + done / RATE - time.perf_counter()))
    recorder.ship()
    channel.emit(WorkerDone(sent=channel.sent))
    waiting = channel.most_waiting
    channel.flush()
    print(f"sent {done} waiting {waiting}", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
