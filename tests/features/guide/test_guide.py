"""The pages of the manual against the code: flags by mode, fields of the JSON, codes of
findings.
"""

import argparse
import re
import subprocess
from pathlib import Path

import msgspec
import pytest
from gpulab.flags import GROUPS

from gpulab.cli import add_flags
from gpulab.features import features
from gpulab.features.compare.report import ComparisonReport
from gpulab.features.doctor import findings as doctor
from gpulab.features.fleet.report import FleetReport
from gpulab.features.history.trend import HistoryReport
from gpulab.features.late.result import JobReport
from gpulab.modes import Mode
from gpulab.report.commands import CalibrationReport, CommandReport
from gpulab.report.parts import PARTS
from gpulab.report.sentences import declarations

GUIDE = Path(__file__).parents[3] / "gpulab" / "guide"
CI, JSON = ((GUIDE / page).read_text() for page in ("08-ci.md", "07-json.md"))
COLUMNS = (
    (Mode.SCREEN,),
    (Mode.RUN,),
    (Mode.CALIBRATE,),
    (Mode.LIST, Mode.DOCTOR),
)
FLAGS = [flag for flags in GROUPS.values() for flag in flags]


def table_of_flags():
    """By flag the modes whose column says yes, or names them."""
    rows = [line.strip("|").split("|") for line in CI.splitlines() if line.startswith("| --")]
    for names, *cells in rows:
        modes = {
            mode
            for column, cell in zip(COLUMNS, cells, strict=True)
            for mode in column
            if cell.strip() in ("yes", mode)
        }
        yield from ((name, modes) for name in names.split())


def test_the_table_of_flags_is_that_of_the_code():
    listed = {mode for column in COLUMNS for mode in column}
    expected = {flag.name: listed & flag.modes for flag in FLAGS}
    assert dict(table_of_flags()) == expected


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
        parser = argparse.ArgumentParser(exit_on_error=False)
        add_flags(parser)
        read = [parser.parse_args(line.split()) for line in runs]
        assert {each.device for each in read} == {f"cuda:{number}" for number in range(8)}
        assert len({each.output for each in read}) == 8
        (folder,) = {str(each.output.parent) for each in read}
        assert folder in last
