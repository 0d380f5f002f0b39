"""Planted bottlenecks and their twins, run on this CPU: each is found first, and no twin accused.

Whole runs take minutes; `test_recorded_pairs.py` reads recordings of the same files.
"""

import json
from functools import partial
from pathlib import Path

import pytest
from workers import WORKERS

from gpulab.cli import main
from gpulab.session.session import Session

PLANTED = Path(__file__).parent / "planted"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
CASES = {
    "on_cpu": (
        "data_wait",
        "many_small_operations",
        "allocates_each_step",
        "optimizer_not_fused",
        "not_fused",
    ),
    "compiled": ("compiles_in_steps",),
}
"""By file the findings that it has a case of."""


@pytest.fixture(scope="module")
def advice(module_lab):
    """By file and variant, the codes that a run says of it, the largest share first."""
    runs = {}

    def of(name):
        if name not in runs:
            runs[name] = _run(module_lab, name)
        return runs[name]

    return of


def _run(lab, name):
    result = lab.folder / f"{name}.json"
    with pytest.MonkeyPatch.context() as patch:
        for key, value in lab.env.items():
            patch.setenv(key, value)
        patch.chdir(lab.folder)
        session = partial(Session, command=WORKERS.command)
        patch.setattr("gpulab.session.launch.Session", session)
        options = ["--device", "cpu", "--time", "1", "--telemetry", "off", "--profile", "all"]
        main(["--run", str(PLANTED / f"{name}.py"), *options, "--json", str(result)])
    variants = json.loads(result.read_text())["runs"][0]["variants"]
    return {
        variant["name"]: [each["finding"]["code"] for each in variant["advice"]]
        for variant in variants
    }


@pytest.mark.parametrize(
    ("file", "code"),
    [pytest.param(file, code, id=code) for file, codes in CASES.items() for code in codes],
)
def test_a_planted_bottleneck_is_found_first_and_its_twin_not_accused(advice, file, code):
    said = advice(file)
    assert said[code][:1] == [code]
    assert code not in said[f"{code}_twin"]
