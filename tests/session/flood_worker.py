"""A worker that measures 10,000 blocks a second for the job's seconds: the lab's own recorder,
channel and clock.
"""

import os
import sys
import time

from gpulab.core.events import WorkerDone, WorkerExited
from gpulab.core.statuses import Stage
from gpulab.core.wire import read_job
from gpulab.engine.build.build import Build
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.measurement import Recorder
from gpulab.engine.processes import channel as channels
from gpulab.engine.processes.channel import SampleBuffer
from gpulab.scenario import Work
from gpulab.stats.comparison import keys_of

RATE, ROUNDS, STEPS = 10_000, 100, 1000


def main():
    job = read_job(0)
    # the smallest pipe that the lab gets along with: it is full in no time
    channels._ROOM = 1 << 16
    channel = channels.Channel(int(sys.argv[1]))
    recorder = Recorder(
        channel, SampleBuffer(("a", "b", "control")), {"a": 1.0, "b": 1.0}, keys_of(job), 0
    )
    clock = WallClock(None)
    build = Build(Work(lambda: None), 0.0, None)
    started, blocks = time.perf_counter(), 0
    while time.perf_counter() - started < job.time_s:
        for number in range(ROUNDS):
            for name in ("a", "b"):
                recorder.add(number, name, clock.block(build, STEPS))
                blocks += 1
            recorder.pump()
        recorder.end_epoch()
        time.sleep(max(0.0, started + blocks / RATE - time.perf_counter()))
    recorder.send()
    channel.emit(WorkerDone(sent=channel.sent))
    waiting = channel.most_waiting
    channel.become_supervisors()
    channel.emit(WorkerExited(code=0, signal=None, stage=Stage.END, variant=None))
    channel.flush()
    print(f"sent {blocks} waiting {waiting}", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
