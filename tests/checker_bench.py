"""What tests of the checks share: a checker, and variants as far as a worker takes them."""

from inspect import signature

import torch

from gpulab.core.jobs import Measure, ScenarioFile
from gpulab.core.machine import Device
from gpulab.engine.build import tensors
from gpulab.engine.build.build import Builder
from gpulab.engine.build.lab import WorkerLab
from gpulab.engine.measure.candidate import calibrate
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.context import WorkerContext
from gpulab.engine.processes.channel import SampleBuffer, WorkerPosition
from gpulab.engine.processes.reporting import Reporter
from gpulab.features.checks.timed_steps import TimedChecks
from gpulab.features.checks.worker import Checker
from gpulab.features.tuning.lab import Tuner
from gpulab.scenario import Variant

N = 64
STEPS = 20
torch.set_num_threads(1)
"""As in a worker: the threads of one step wait for each other where other work has their cores."""


class RecordingChannel:
    def __init__(self):
        self.events = []

    def emit(self, *events):
        self.events += events

    def pump(self):
        pass


class Bench:
    """A checker with what it needs; `check` takes a variant as far as a worker does, its re-check
    included.
    """

    def __init__(self, *cases):
        lab = WorkerLab(torch.device("cpu"), Device(kind="cpu", name=""), WorkerPosition(()))
        self.builder = Builder(lab, {"n": N}, seed=0, wait=None)
        self.variants = {}
        self.channel = RecordingChannel()
        self.checker = Checker(self.builder, self.channel.emit, cases)

    def check(self, name, make_work):
        """The Checked of its re-check; raises what the checks raise. `make_work` may take the size,
        n.
        """

        def function(lab, n):
            return make_work(n) if signature(make_work).parameters else make_work()

        variant = self.variants[name] = Variant(name=name, function=function)
        build = self.builder.build(variant)
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        saved = tensors.copies(inputs)
        self.builder.first_step(build)
        self.checker.before(variant, build, inputs, saved)
        for _ in range(STEPS):
            build.work.step()
        self.checker.still(name, build)
        return self.checker.after(name, build, lambda: self.builder.build(variant))

    @property
    def events(self):
        return self.channel.events

    @property
    def codes(self):
        return [(finding.code, finding.variant) for finding in self.checker.findings]


class TimedBench(Bench):
    """One whose variants are timed too, in this process: each is built, and its steps fill a
    block.
    """

    def __init__(self):
        super().__init__()
        job = Measure(subject=ScenarioFile(scenario="s", path="", source_sha256="", variants=()))
        self.names = []
        clock = WallClock(None)
        reporter = Reporter(self.channel, job, WorkerPosition(self.names))
        self.context = WorkerContext(
            job=job,
            number=0,
            seed=0,
            device=self.builder.device,
            reporter=reporter,
            buffer=SampleBuffer(()),
            builder=self.builder,
            tuner=Tuner(job, self.builder, reporter, clock, (), first=True),
            checker=self.checker,
            clock=clock,
            other_clock=None,
        )
        self.candidates = {}
        self.timed_checks = TimedChecks(self.context)

    def check(self, name, make_work):
        super().check(name, make_work)
        self.names.append(name)
        build = self.builder.build(self.variants[name])
        self.builder.first_step(build)
        self.context.checked.add(name)
        self.candidates[name] = calibrate(self.context.clock, self.variants[name], build)
        self.candidates[name].build = build

    def time_blocks(self, name, count):
        """So many timed blocks of a variant; raises what the checks of them raise."""
        candidate, clock = self.candidates[name], self.context.clock
        for _ in range(count):
            interruption = self.timed_checks.prepare(candidate)
            clock.block(
                candidate.build,
                candidate.steps,
                lead_in=candidate.lead_in,
                interruption=interruption,
            )
            self.timed_checks.compare(candidate)

    def take_alone(self, name):
        """What is wrong with steps that are taken alone, beside the first variant's; None where
        nothing is.
        """
        failed = self.timed_checks.check(
            [next(iter(self.candidates.values())), self.candidates[name]]
        )
        return failed[0][1].finding if failed else None


def of_operands(make_work):
    """Of two random matrices."""
    return lambda n=N: make_work(torch.randn(n, n), torch.randn(n, n))
