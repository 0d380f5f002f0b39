"""What a CI reads of gpulab: JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from xml.etree import ElementTree

import msgspec

from gpulab.core.text import one_line


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
