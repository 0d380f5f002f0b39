"""The JSON of a report: all of it survives the way there and back, and every number in it is
one.
"""

import json
import math

import msgspec
import pytest
from recorded import NAMES, report_of
from reports import run_report
from synthetic_runs import report_of as report_of_events
from synthetic_runs import run_of

from gpulab.core import events as e
from gpulab.core.findings import Finding
from gpulab.core.statuses import ExitCode
from gpulab.core.wire import decode, encode
from gpulab.features.repeats.report import repeat_reports
from gpulab.features.sweeps.report import sweep_of
from gpulab.report.commands import CalibrationReport, CommandReport, combine
from gpulab.report.report import RunReport
from gpulab.report.sentences import builtins_of


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def structs(value, kind):
    """Every struct of a kind within a value."""
    if isinstance(value, kind):
        yield value
    if isinstance(value, msgspec.Struct):
        value = [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, dict):
        value = list(value.values())
    for item in value if isinstance(value, (list, tuple)) else ():
        yield from structs(item, kind)


def numbers(document):
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, list):
        for item in document:
            yield from numbers(item)
    elif isinstance(document, float):
        yield document


@pytest.mark.parametrize("name", NAMES)
def test_a_report_survives_its_json_and_its_numbers_and_findings_are_whole(tmp_path, name):
    report = report_of(name, tmp_path)
    assert_survives(report)
    assert_finite(report)
    assert_findings_are_typed(report)


def assert_survives(report):
    command = combine(
        [report],
        report.environment,
        [sweep_of("size", [report, report], report)],
        repeat_reports([report] * 9),
    )
    fields = builtins_of(command)
    text = msgspec.json.encode(fields)
    assert msgspec.json.encode(msgspec.json.decode(text)) == text
    (run, *_) = fields["runs"]
    assert len(run) == len(RunReport.__struct_fields__) - 1 + sum(
        len(part.__struct_fields__) for part in report.parts
    )


def assert_finite(report):
    document = json.loads(msgspec.json.encode(report), parse_constant=refuse)
    assert all(math.isfinite(number) for number in numbers(document))
    # msgspec writes what is not finite as null, which no reader could tell from unknown.
    assert all(math.isfinite(number) for number in numbers(msgspec.to_builtins(report)))


def assert_findings_are_typed(report):
    findings = list(structs(report, Finding))
    assert len(findings) >= len(report.findings)
    for finding in findings:
        document = json.loads(msgspec.json.encode(finding))
        assert set(document) == {"code", "variant", "values"}
        assert finding.code == finding.code.lower().replace(" ", "_") != ""
        assert finding.variant is None or finding.variant in {
            variant.name for variant in report.variants
        }
        assert msgspec.convert(document, Finding) == finding


def test_a_figure_that_is_not_a_number_is_unknown():
    reported = decode(
        encode(e.Reported(variant="a", name="loss", value=float("nan"), t=50.0)).rstrip(b"\n")
    )
    report = report_of_events(run_of({}, later=[reported]))
    assert [figure.value for figure in report.figures] == [None]


def test_codes_and_verdicts_are_words_and_exit_codes_are_numbers():
    document = json.loads(msgspec.json.encode(report_of_events(run_of({"b": 0.5}))))
    assert (document["outcome"], document["exit_code"]) == ("measured", 0)
    assert (document["control"]["verdict"], document["comparisons"][0]["verdict"]) == (
        "no difference",
        "faster",
    )
    assert (document["variants"][0]["status"], document["progress"]["stage"]) == ("ok", "measure")
    assert document["method"] == {
        "clock": "wall",
        "cache": "hot",
        "epochs": 20,
        "rounds": 100,
        "processes": 0,
        "comparisons": 1,
        "familywise": pytest.approx(0.01),
        "confidence": 0.99,
        "floor": 0.01,
        "unit": "epoch medians",
        "empty_block_s": None,
        "stopped": "width",
    }


def test_the_outermost_objects_name_their_schema():
    assert json.loads(msgspec.json.encode(CommandReport()))["schema"] == "gpulab.result/2"
    assert json.loads(msgspec.json.encode(CalibrationReport()))["schema"] == "gpulab.ceilings/1"
    assert (
        json.loads(msgspec.json.encode(run_report(scenario="s", exit_code=ExitCode.WRONG)))[
            "exit_code"
        ]
        == 4
    )
