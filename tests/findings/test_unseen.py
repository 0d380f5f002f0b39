"""Slow programs by an author who had not read the rules: what is said of them and of their twins.

A twin has the calls of its program, and what is slow there costs it less than 3 %.
"""

import json
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
