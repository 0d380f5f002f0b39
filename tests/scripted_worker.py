"""A worker without torch, whose times follow from the run's parameters: what the command line makes
of it is exact.

A step of the first variant takes `n` microseconds (100 of a plain function), of the second half as long, of the third a
third, and reports a figure. The second one fails where `n` is `fails_at`. Contenders of a final have the `n` of their
own. A job that must not stop early is measured as long as it asks for. A calibration is the
recorded one.
"""

import os
import tempfile
import time
from itertools import accumulate

from found import finding
from worker_pipe import WorkerPipe

from gpulab.core import events as e
from gpulab.core.jobs import Calibrate
from gpulab.core.machine import Device
from gpulab.core.run_file import read_run_file
from gpulab.core.statuses import FailureKind, Stage, StopReason
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.scenario import CONTROL

EPOCHS, ROUNDS = 20, 5
NUMBERS = {"before": 1, "after": 2}
"""Of the variants that contenders of a final are."""


class Script:
    """What the worker sends, by its job."""

    def __init__(self):
        self.pipe = WorkerPipe()
        self.job, self.emit = self.pipe.job, self.pipe.emit

    def play(self):
        if isinstance(self.job, Calibrate):
            self.calibrate()
        else:
            self.run()
        self.pipe.end()

    def calibrate(self):
        from recorded import run_file

        with tempfile.TemporaryDirectory() as folder:
            for event in read_run_file(run_file("calibration", folder)).events:
                if isinstance(event, (e.StageStarted, e.WorkerReady, CeilingsMeasured)):
                    self.emit(event)

    def run(self):
        job, params = self.job, getattr(self.job.subject, "params", {})
        device = Device(kind="cpu", name="scripted")
        self.emit(e.WorkerReady(pid=os.getpid(), device=device, environment={"torch": "0"}))
        step_s = {}
        for number, variant in enumerate(job.subject.variants, 1):
            if variant.missing:
                continue
            n = {"n": 100, **params, **variant.params}["n"]
            number = NUMBERS.get(variant.function, number)
            self.emit(e.StageStarted(stage=Stage.BUILD, variant=variant.name))
            if number == 2 and params.get("fails_at") == n:
                cause = finding("exception", message="AssertionError: no")
                traceback = "Traceback (most recent call last):\nAssertionError: no"
                place = {"kind": FailureKind.ERROR, "stage": Stage.BUILD, "line": 7}
                self.emit(
                    e.VariantFailed(variant=variant.name, cause=cause, traceback=traceback, **place)
                )
                continue
            if number > 2:
                self.emit(e.Reported(variant=variant.name, name="mean", value=0.5))
            step_s[variant.name] = n * 1e-6 / number
            self.emit(e.Built(variant=variant.name, build_s=1e-3, first_step_s=1e-3, items=1.0))
            if params:  # of a plain function nothing is checked
                passed = {"ok": True, "error": 0.0, "tolerance": 1e-4}
                self.emit(e.Checked(variant=variant.name, **passed))
        self.emit(e.StageStarted(stage=Stage.MEASURE))
        self.emit(e.Planned(rounds=ROUNDS, epochs=EPOCHS))
        print("measuring", flush=True)
        self.measure({**step_s, CONTROL: next(iter(step_s.values()))})
        self.emit(e.Stopped(reason=StopReason.WIDTH))

    def measure(self, step_s):
        """Every epoch as one batch."""
        names = (*(variant.name for variant in self.job.subject.variants), CONTROL)
        ended_last = time.monotonic()
        for epoch in range(EPOCHS):
            rows = [(number, index) for number in range(ROUNDS) for index in range(len(step_s))]
            usual = [*step_s.values()]
            # Only the second variant varies: to both sides of its time, from one epoch to the next.
            noise = [1.0, 1 + 1e-3 * (-1) ** epoch, *[1.0] * len(usual)]
            times_s = [usual[index] * noise[index] for _, index in rows]
            # a clock outside sees one block after the other
            ended = [ended_last + past_s for past_s in accumulate(times_s)]
            ended_last = ended[-1]
            time.sleep(max(0.0, ended_last - time.monotonic()))
            self.emit(
                e.Samples(
                    names=names,
                    complete=epoch + 1,
                    epoch=[epoch] * len(rows),
                    round=[number for number, _ in rows],
                    variant=[names.index([*step_s][index]) for _, index in rows],
                    times_s=times_s,
                    cpu_s=times_s,
                    faults=[0] * len(rows),
                    switches=[0] * len(rows),
                    ended=ended,
                    steps=[1] * len(rows),
                )
            )


if __name__ == "__main__":
    Script().play()
