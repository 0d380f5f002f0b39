"""The pages of the manual against the code: fields of the JSON, codes of
findings.
"""

import re
from pathlib import Path

import msgspec
import pytest

from gpulab.features import features
from gpulab.features.compare.report import ComparisonReport
from gpulab.features.doctor import findings as doctor
from gpulab.features.fleet.report import FleetReport
from gpulab.features.history.trend import HistoryReport
from gpulab.features.late.result import JobReport
from gpulab.report.commands import CalibrationReport, CommandReport
from gpulab.report.parts import PARTS
from gpulab.report.sentences import declarations

GUIDE = Path(__file__).parents[3] / "gpulab" / "guide"
JSON = (GUIDE / "07-json.md").read_text()


def fields_of(struct):
    """The names of the fields of a struct and of all structs within it."""
    pending, passed = [struct], set()
    while pending:
        kind = pending.pop()
        if kind in passed:
            continue
        passed.add(kind)
        for field in msgspec.structs.fields(kind):
            if field.encode_name != PARTS:
                yield field.encode_name
            pending += structs_in(field.type)


def structs_in(kind):
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for part in getattr(kind, "__args__", ()) for struct in structs_in(part)]


def parts_of_features():
    parts = [part for each in features() for part in (each.variant_part, each.run_part)]
    return [part for part in parts if part]


@pytest.mark.parametrize(
    "struct",
    [
        CommandReport,
        CalibrationReport,
        FleetReport,
        ComparisonReport,
        HistoryReport,
        JobReport,
        *parts_of_features(),
    ],
)
def test_every_field_of_the_json_is_on_its_page(struct):
    words = set(re.findall(r"\w+", JSON))
    assert sorted(set(fields_of(struct)) - words) == []


def test_every_code_of_a_finding_is_on_its_page():
    # Those of checks of the machine are left to the code, as the page says.
    missing = {code for code in declarations() if f"`{code}`" not in JSON}
    assert sorted(missing - vars(doctor).keys()) == []
