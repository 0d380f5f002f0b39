"""What a CI reads of gpulab: JUnit XML, the JSON of github-action-benchmark, and Bencher's."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from xml.etree import ElementTree

import msgspec

from gpulab.core.text import one_line, plain, plain_json

_NS = 1e9


class CaseStatus(StrEnum):
    """The elements of JUnit. What is not shown to hold is an error: the test said nothing."""

    PASSED = "passed"
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One test of a suite, which is a scenario."""

    suite: str
    name: str
    status: CaseStatus = CaseStatus.PASSED
    kind: str = ""
    """Of failure or error, in a word."""
    message: str = ""
    seconds: float = 0.0


def junit(cases: Sequence[Case]) -> bytes:
    """JUnit XML, as Jenkins and GitLab read it."""
    root = ElementTree.Element("testsuites", {"name": "gpulab", **_counts(cases)})
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.suite, []).append(case)
    for name, of_suite in suites.items():
        attributes = {"name": one_line(name), **_counts(of_suite)}
        suite = ElementTree.SubElement(root, "testsuite", attributes)
        for case in of_suite:
            _add(suite, case)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _add(suite: ElementTree.Element, case: Case) -> None:
    attributes = {
        "classname": one_line(case.suite),
        "name": one_line(case.name),
        "time": f"{case.seconds:.3f}",
    }
    element = ElementTree.SubElement(suite, "testcase", attributes)
    message = one_line(case.message)
    if case.status != CaseStatus.PASSED:
        child = ElementTree.SubElement(element, case.status.value, {"message": message})
        if case.kind:
            child.set("type", case.kind)
        child.text = message
    elif message:
        ElementTree.SubElement(element, "system-out").text = message


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    statuses = [case.status for case in cases]
    return {
        "tests": str(len(cases)),
        "failures": str(statuses.count(CaseStatus.FAILURE)),
        "errors": str(statuses.count(CaseStatus.ERROR)),
        "skipped": str(statuses.count(CaseStatus.SKIPPED)),
    }


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One figure with its interval. Seconds, unless `over` says of what it is the time as a
    multiple: 0.5 over the baseline is half of its time.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    over: str = ""
    device: str = ""


def benchmark_json(metrics: Sequence[Metric]) -> bytes:
    """For github-action-benchmark with `tool: customSmallerIsBetter`. Units never change from run
    to run: it compares bare numbers.
    """
    entries = []
    for metric in metrics:
        scale = 1.0 if metric.over else _NS
        entry: dict[str, object] = {
            "name": plain(_title(metric)),
            "unit": "x" if metric.over else "ns",
            "value": metric.value * scale,
        }
        if metric.low is not None and metric.high is not None:
            entry["range"] = f"± {(metric.high - metric.low) / 2 * scale:.4g}"
        if metric.device:
            entry["extra"] = plain(metric.device)
        entries.append(entry)
    return _json(entries)


def bmf(metrics: Sequence[Metric]) -> bytes:
    """The Bencher Metric Format: by benchmark its measures. `latency` is in nanoseconds; the other
    measure, `relative-time`, is that of the baseline, or of A, as 1.
    """
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for metric in metrics:
        scale = 1.0 if metric.over else _NS
        measure = {"value": metric.value * scale}
        if metric.low is not None and metric.high is not None:
            measure |= {"lower_value": metric.low * scale, "upper_value": metric.high * scale}
        kind = "relative-time" if metric.over else "latency"
        benchmarks.setdefault(plain(_title(metric)), {})[kind] = measure
    return _json(benchmarks)


def _title(metric: Metric) -> str:
    name = one_line(metric.name)
    return f"{name} over {one_line(metric.over)}" if metric.over else name


def _json(value: object) -> bytes:
    return plain_json(msgspec.json.format(msgspec.json.encode(value))) + b"\n"
