"""The pages of the manual against the code: fields of the JSON, codes of
findings.
"""

import re
import subprocess
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


def test_the_loops_over_the_gpus_of_a_machine_are_commands(tmp_path):
    """As a shell runs them: each GPU has a file of its own in the folder that is read then."""
    page = (GUIDE / "15-fleet.md").read_text()
    for block in re.findall(r"^```\n(for .*?)^```$", page, re.MULTILINE | re.DOTALL):
        script = 'gpulab() { echo "$@"; }\n' + block
        said = subprocess.check_output(["bash", "-c", script], cwd=tmp_path, text=True)
        *runs, last = said.splitlines()
        devices, outputs = (re.findall(rf"{flag} (\S+)", said) for flag in ("--device", "--output"))
        assert {*devices} == {f"cuda:{number}" for number in range(8)}
        assert len({*outputs}) == len(runs) == 8
        (folder,) = {str(Path(output).parent) for output in outputs}
        assert folder in last
