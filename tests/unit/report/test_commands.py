"""Of several runs of one command: the sweep they are, and the exit code that counts."""

import pytest

from gpulab.protocol.statuses import Status
from gpulab.report.commands import combine, sweep_of
from gpulab.report.exit_codes import ExitCode
from gpulab.report.report import RunReport, Time, VariantReport


def variant(name, median, *, half=0.1, items=1.0, status=Status.OK):
    time = None if median is None else Time(median=median, low=median - half, high=median + half)
    return VariantReport(name=name, status=status, items=items, time_s=time)


def point(value, *variants, parameter="size", exit_code=ExitCode.MEASURED):
    return RunReport(scenario="s", params={parameter: value}, variants=list(variants), exit_code=exit_code)


def test_the_best_value_has_the_least_time_per_item():
    runs = [
        point(1, variant("a", 1.0, items=1.0), variant("b", 1.0, items=1.0)),
        point(2, variant("a", 1.5, items=2.0), variant("b", 3.0, items=2.0)),
        point(4, variant("a", 9.0, items=4.0), variant("b", 8.0, items=4.0)),
    ]
    sweep = sweep_of("size", runs)
    assert (sweep.scenario, sweep.parameter, sweep.best) == ("s", "size", {"a": 2, "b": 1})


def test_near_are_the_values_whose_interval_reaches_that_of_the_best():
    runs = [point(value, variant("a", time)) for value, time in ((1, 1.5), (2, 1.2), (3, 1.0), (4, 1.15), (5, 1.21))]
    assert sweep_of("size", runs).near == {"a": [2, 4]}
    runs = [point(1, variant("a", 2.0, items=2.0)), point(2, variant("a", 4.4, items=4.0, half=0.4))]
    assert sweep_of("size", runs).near == {"a": [2]}  # per item: 1.0 to 1.05, and from 1.0


def test_a_time_without_interval_counts_as_its_median():
    rough = VariantReport(name="a", status=Status.OK, items=1.0, time_s=Time(median=1.05))
    sweep = sweep_of("size", [point(1, variant("a", 1.0)), point(2, rough)])
    assert (sweep.best, sweep.near) == ({"a": 1}, {"a": [2]})
    sweep = sweep_of("size", [point(1, rough), point(2, variant("a", 1.2, half=0.1))])
    assert (sweep.best, sweep.near) == ({"a": 1}, {"a": []})


def test_a_variant_that_was_measured_at_one_value_only_has_no_best():
    failed = variant("b", None, status=Status.FAILED)
    sweep = sweep_of("size", [point(1, variant("a", 1.0), variant("b", 1.0)), point(2, variant("a", 2.0), failed)])
    assert (sweep.best, set(sweep.near)) == ({"a": 1}, {"a"})


def test_runs_without_the_parameter_are_no_points():
    runs = [point(1, variant("a", 1.0)), point(2, variant("a", 0.5), parameter="other"), point(3, variant("a", 2.0))]
    assert sweep_of("size", runs).best == {"a": 1}


def test_values_of_a_sweep_keep_their_type():
    runs = [point(value, variant("a", time)) for value, time in ((True, 1.0), ("fast", 0.5), (0.25, 0.55))]
    sweep = sweep_of("size", runs)
    assert (sweep.best, sweep.near) == ({"a": "fast"}, {"a": [0.25]})


@pytest.mark.parametrize(
    ("codes", "expected", "outcome"),
    [
        ([0, 0], 0, "measured"),
        ([0, 6, 5], 5, "slower than required"),
        ([5, 7], 7, "invalid"),
        ([4, 7], 4, "wrong"),
        ([3, 4], 3, "failed"),
        ([3, 130], 130, "interrupted"),
        ([], 0, "measured"),
    ],
)
def test_a_command_has_the_exit_code_that_counts(codes, expected, outcome):
    runs = [RunReport(scenario="x", exit_code=ExitCode(code)) for code in codes]
    command = combine(runs, {"torch": "2.9"})
    assert (command.exit_code, command.outcome, command.runs) == (expected, outcome, runs)
    assert (command.environment, command.sweeps, command.schema) == ({"torch": "2.9"}, [], "gpulab.result/1")
