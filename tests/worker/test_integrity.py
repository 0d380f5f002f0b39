"""What a scenario puts in the place of the lab's own functions is named at the end of its job;
nothing else is.
"""

import builtins
import copy
import pickle
import resource
import time

import pytest
import torch

import gpulab.engine.processes.fork_server  # noqa: F401  # all that a worker has loaded before its scenario
from gpulab.engine.build import build, tensors
from gpulab.engine.measure import clock
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.processes import failure
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.integrity import LabFunctions, freeze
from gpulab.features.checks import worker as checks
from gpulab.features.checks.worker import Checker
from gpulab.scenario import Scenario, Work


def other(*arguments, **keywords):
    return 0


CASES = {
    # name of what is replaced: (holder, attribute, value)
    "gpulab.engine.measure.clock.perf_counter_ns": (clock, "perf_counter_ns", other),
    "gpulab.engine.measure.clock.median": (clock, "median", other),
    "gpulab.engine.measure.clock.resource": (clock, "resource", torch),
    "gpulab.engine.measure.clock._MOST_STEPS": (clock, "_MOST_STEPS", 1),
    "gpulab.engine.measure.clock.WallClock._run": (WallClock, "_run", other),
    "gpulab.engine.measure.clock.WallClock.__getattribute__": (
        WallClock,
        "__getattribute__",
        object.__getattribute__,
    ),
    "gpulab.engine.measure.clock.max": (clock, "max", other),
    "gpulab.engine.build.tensors.agree": (tensors, "agree", other),
    "gpulab.engine.build.tensors.TOLERANCE": (tensors, "TOLERANCE", dict(tensors.TOLERANCE)),
    "gpulab.engine.build.build.perf_counter": (build, "perf_counter", other),
    "gpulab.features.checks.worker.Checker": (checks, "Checker", type("Checker", (Checker,), {})),
    "gpulab.features.checks.worker.Checker.after": (Checker, "after", other),
    "gpulab.engine.processes.channel.WorkerPosition.stage": (
        WorkerPosition,
        "stage",
        property(other),
    ),
    "time.perf_counter": (time, "perf_counter", other),
    "resource.getrusage": (resource, "getrusage", other),
    "torch.equal": (torch, "equal", other),
    "torch.cuda.synchronize": (torch.cuda, "synchronize", other),
    "torch.Tensor.copy_": (torch.Tensor, "copy_", other),
    "torch.Tensor.__ne__": (torch.Tensor, "__ne__", other),
    "builtins.max": (builtins, "max", lambda *values, **options: sorted(values)[-1]),
}


@pytest.fixture(scope="module")
def functions():
    return LabFunctions()


def test_what_is_replaced_is_named(monkeypatch, functions):
    assert functions.replaced() == []
    with monkeypatch.context() as patch:
        for holder, attribute, value in CASES.values():
            patch.setattr(holder, attribute, value, raising=False)
        replaced = functions.replaced()
    assert [name for name in CASES if name not in replaced] == []
    # what is replaced is in the modules that import it too
    known = {name.rpartition(".")[2] for name in CASES}
    assert {name.rpartition(".")[2] for name in replaced} == known
    assert functions.replaced() == []


CHANGES = {
    "gpulab.engine.build.tensors.agree": (tensors.agree, "__code__", other.__code__),
    "gpulab.engine.build.tensors.changed": (tensors.changed, "__defaults__", (None,)),
    "gpulab.features.checks.worker.Checker.before": (Checker.before, "__code__", other.__code__),
    "gpulab.engine.build.tensors.put_back": (
        tensors.put_back.__wrapped__,
        "__code__",
        other.__code__,
    ),
}


def test_a_function_that_is_changed_in_place_is_named(monkeypatch, functions):
    with monkeypatch.context() as patch:
        for function, attribute, value in CHANGES.values():
            patch.setattr(function, "__kwdefaults__", function.__kwdefaults__)
            patch.setattr(function, attribute, value)
        replaced = functions.replaced()
    assert [name for name in CHANGES if name not in replaced] == []
    assert functions.replaced() == []


def test_keyword_defaults_and_contents_of_constants_are_looked_at(monkeypatch):
    functions = LabFunctions()
    monkeypatch.setitem(tensors.agree.__kwdefaults__, "tolerance", 1.0)
    monkeypatch.setitem(tensors.TOLERANCE, "fp32", 1.0)
    assert functions.replaced() == [
        "gpulab.engine.build.tensors.TOLERANCE",
        "gpulab.engine.build.tensors.agree",
    ]


class OwnWork(Work):
    pass


def test_copies_of_the_lab_s_objects_are_no_replacement():
    functions = LabFunctions()
    for item in (Work(abs), OwnWork(abs), Scenario("t")):
        copy.copy(item)
        pickle.loads(pickle.dumps(item))
    assert "__slotnames__" in vars(Work)
    assert functions.replaced() == []


def test_a_method_that_python_calls_by_itself_is_named(monkeypatch, functions):
    methods = ("__bool__", "__getattr__", "__eq__")
    with monkeypatch.context() as patch:
        for name in methods:
            patch.setattr(Checker, name, other, raising=False)
        replaced = functions.replaced()
    assert {f"gpulab.features.checks.worker.Checker.{name}" for name in methods} <= set(replaced)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_method_that_an_object_hides_is_named(functions, frozen):
    checker = Checker.__new__(Checker)
    if frozen:  # the collector lists it no more
        freeze()
    assert functions.replaced() == []
    checker.after = other
    assert functions.replaced() == ["gpulab.features.checks.worker.Checker.after"]


def test_what_the_lab_and_compilers_do_themselves_is_no_replacement(monkeypatch):
    functions = LabFunctions()
    import torch._dynamo

    torch._dynamo.reset()
    tensors.agree([torch.ones(2)], [torch.ones(2)])
    failure.failure(ValueError("x"), "", None, "build")
    monkeypatch.setattr(clock, "__compiled_fn_1", other, raising=False)
    monkeypatch.setattr(builtins, "print", other)
    assert functions.replaced() == []
