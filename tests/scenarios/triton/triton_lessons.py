"""Lessons that have kernels in Triton: which there are, their files as modules, and a Lab for their
builds.

It imports no Triton itself: whether kernels are interpreted or compiled is decided before the first
import.
"""

from __future__ import annotations

import importlib.util
from contextlib import nullcontext
from pathlib import Path

SCENARIOS = Path(__file__).parents[3] / "scenarios"
FIRST_OF_TRITON = "import triton.language"


class SkippedError(Exception):
    """The lesson leaves a variant out, with its reason."""


class Lab:
    """What builds receive. `chosen` is the number of the candidate that `gpulab.tune` takes."""

    l2_bytes, memory_bytes = 50 * 2**20, 2**33

    def __init__(self, device, sms, chosen=0):
        self.device, self.sms, self.chosen = device, sms, chosen

    def phase(self, name):
        return nullcontext()

    def useful(self):
        return nullcontext()

    def report(self, name, value):
        """Nobody reads it."""

    def skip(self, reason):
        raise SkippedError(reason)

    def tune(self, candidates, make):
        return make(**list(candidates)[self.chosen])


def names():
    """Of the lessons, sorted."""
    return sorted(
        path.stem for path in SCENARIOS.glob("*.py") if FIRST_OF_TRITON in path.read_text()
    )


def load(path):
    """The module of a file, new with each call: Triton keeps what it compiled with the functions of
    a module.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lesson(name):
    return load(SCENARIOS / f"{name}.py")


def variants(module):
    """Those that need Triton, by their names; a library's kernel for scale may be among them."""
    scenario = module.scenario
    needing = scenario.variants.values()
    return {
        variant.name: variant
        for variant in needing
        if "triton" in (*scenario.needs, *variant.needs)
    }


def build(module, lab, variant, **chosen):
    """The work of a variant with the lesson's own parameters, but for those that are chosen."""
    function, params = (
        module.scenario.variants[variant].function,
        {**module.scenario.params, **chosen},
    )
    used = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    return function(lab, **{name: params[name] for name in used})
