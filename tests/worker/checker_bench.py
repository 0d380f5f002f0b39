"""What tests of the checks share: a checker, and variants as far as a worker takes them."""

from inspect import signature

import torch

from gpulab.protocol.device import Device
from gpulab.scenario import Variant
from gpulab.worker.building import tensors
from gpulab.worker.building.build import Builder
from gpulab.worker.building.lab import WorkerLab
from gpulab.worker.checks import Checker
from gpulab.worker.process.position import WorkerPosition

N = 64
STEPS = 20


class Bench:
    """A checker with what it needs; `check` takes a variant as far as a worker does, its re-check included."""

    def __init__(self, *cases):
        lab = WorkerLab(torch.device("cpu"), Device(kind="cpu", name=""), WorkerPosition(()))
        self.builder = Builder(lab, {"n": N}, seed=0, wait=None)
        self.events = []
        self.checker = Checker(self.builder, self.events.append, cases)

    def check(self, name, make_work):
        """The Checked of its re-check; raises what the checks raise. `make_work` may take the size, n."""

        def function(lab, n):
            return make_work(n) if signature(make_work).parameters else make_work()

        variant = Variant(name=name, function=function)
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
    def codes(self):
        return [(finding.code, finding.variant) for finding in self.checker.findings]


def of_operands(make_work):
    """Of two random matrices."""
    return lambda n=N: make_work(torch.randn(n, n), torch.randn(n, n))
