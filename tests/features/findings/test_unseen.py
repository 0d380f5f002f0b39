"""Slow programs by an author who had not read the rules: what is said of them and of their twins.

A twin has the calls of its program, and what is slow there costs it less than 3 %. The second five
were written before the rules about lines of a program were, and run when these were done.
"""

import json
import re
from functools import partial
from pathlib import Path

import pytest
from workers import WORKERS

from gpulab.cli import main
from gpulab.session.session import Session

UNSEEN = Path(__file__).parent / "unseen"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("program", "culprit"),
    [
        ("adam_deep", "optimizer"),
        ("store_first", "receive"),
        ("gallery_half", "float16"),
        ("cache_long", "aten::cat"),
        ("records_many", "json"),
    ],
)
def test_the_advice_of_a_slow_program_names_its_culprit_first(lab, program, culprit):
    first = json.dumps(_advice(lab, program)[:1])
    assert culprit in first


@pytest.mark.parametrize(
    ("program", "culprit"),
    [
        ("adam_shallow", "optimizer"),
        ("store_later", "receive"),
        ("gallery_single", "float16"),
        ("cache_short", "aten::cat"),
        ("records_few", "json"),
    ],
)
def test_a_twin_is_not_accused(lab, program, culprit):
    assert culprit not in json.dumps(_advice(lab, program))


def _advice(lab, program):
    result = lab.folder / "result.json"
    with pytest.MonkeyPatch.context() as patch:
        for key, value in lab.env.items():
            patch.setenv(key, value)
        patch.chdir(lab.folder)
        session = partial(Session, command=WORKERS.command)
        patch.setattr("gpulab.session.launch.Session", session)
        options = ["--device", "cpu", "--time", "1", "--telemetry", "off"]
        code = main(["--run", f"{UNSEEN / program}.py:step", *options, "--json", str(result)])
    if code:
        raise RuntimeError(f"exit code {code}")
    return json.loads(result.read_text())["runs"][0]["variants"][0]["advice"]


LATER = {
    "tally": ("tally_many", "tally_few", r"tally_\w+\.py:2[0-4]"),
    "volume": ("volume_command", "volume_rare", "subprocess"),
    "ranks": ("ranks_all", "ranks_some", "aten::sort"),
    "spread": ("spread_numpy", "spread_small", r"spread_\w+\.py:2[0-4]|np\."),
    "shards": ("shards_files", "shards_few", "read_batch"),
}
"""The program, its twin, and what names the culprit."""
_NAMED_INSIDE = "a line inside of numpy is named, not the one of the program that calls it"


@pytest.mark.parametrize(
    "name",
    [
        "tally",
        "volume",
        "ranks",
        pytest.param(
            "spread",
            marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=_NAMED_INSIDE),
        ),
        "shards",
    ],
)
def test_the_advice_of_a_later_program_names_its_culprit_first(lab, name):
    program, _, culprit = LATER[name]
    assert re.search(culprit, json.dumps(_advice(lab, program)[:1]))


@pytest.mark.parametrize("name", LATER)
def test_a_later_twin_is_not_accused(lab, name):
    _, twin, culprit = LATER[name]
    assert not re.search(culprit, json.dumps(_advice(lab, twin)))
