"""Every folder of gpulab/features can be taken out but those named here: the rest of the lab still
works, without what that folder adds.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.features import folders, present

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "gpulab"
CORPUS = TESTS / "corpus"
NEEDED = {
    "checks": "a worker compares outputs before it times anything",
    "goodput": "the time of a step, and where it goes, is what other parts are shares of",
    "roofline": "a worker counts work and measures ceilings beside the variants",
    "telemetry": "its readings say which samples do not count",
}
OPTIONAL = sorted({*folders()} - {*NEEDED})
FOLLOW = ["--run", "--", "true"]
REFUSED = {
    "code": ["--show", "vector_add"],
    "counters": ["--run", "a", "--ncu"],
    "compare": ["--compare", "a", "b"],
    "counters_in_time": ["--run", "a", "--counters"],
    "course": ["--guide", "course", "batched_matmul"],
    "doctor": ["--doctor"],
    "bill": ["--replay", "a", "--checklist"],
    "fleet": ["--fleet", "."],
    "from_trace": ["--from-trace", "a.json"],
    "gate": ["--run", "a", "--fail-below", "2x"],
    "history": ["--history"],
    "kernels": ["--show", "vector_add"],
    "memory": ["--run", "a", "--memory"],
    "program": FOLLOW,
    "repeats": ["--run", "a", "--repeat", "8"],
    "sweeps": ["--run", "a", "--sweep", "n=1,2"],
    "trials": ["--run", "a", "--what-if"],
    "tuning": ["--run", "a", "--retune"],
}
"""Commands that are of a feature, and say so where it is missing."""


def without(names, folder):
    """The environment of a process to which the package has no such features."""
    package = folder / "gpulab"
    features = package / "features"
    features.mkdir(parents=True)
    (folder / "scenarios").symlink_to(TESTS.parent / "scenarios")
    linked = [path for path in PACKAGE.iterdir() if path.name != features.name]
    linked += [path for path in (PACKAGE / features.name).iterdir() if path.name not in names]
    for path in linked:
        (folder / path.relative_to(PACKAGE.parent)).symlink_to(path)
    state = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CACHE")}
    return {**os.environ, **state, "PYTHONPATH": str(folder), "NO_COLOR": "1"}


def carried_out(commands, folder, environment):
    """Of each command its exit code, and what it printed."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("commands.py")],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def replay(folder):
    """Of a comparison on a GPU, in a terminal, as JSON and as a page."""
    run = str(CORPUS / "batched_matmul-h100-1.jsonl.xz")
    outputs = ["--json", str(folder / "run.json"), "--export", str(folder / "run.html")]
    return ["--replay", run, "--verbose", *outputs]


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_feature_can_be_taken_out(name, tmp_path):
    shown = [["--list"], ["--help"], ["--guide", "verdict"], replay(tmp_path)]
    if name != "program":
        shown.append(FOLLOW)
    refused = [REFUSED[name]] if name in REFUSED else []
    results = carried_out([*shown, *refused], tmp_path, without([name], tmp_path))
    for command, (code, printed) in zip(shown, results, strict=False):
        assert code == 0, f"{command}: {printed}"
    missing = f"is not installed: there is no gpulab.features.{name}"
    for code, printed in results[len(shown) :]:
        assert code == 2
        assert missing in printed
        assert printed.count("\n") == 1


def test_a_run_is_measured_without_any_of_them(tmp_path):
    environment = without(OPTIONAL, tmp_path)
    run = ["--run", "batched_matmul", "--smoke", "--device", "cpu", "--json", "run.json"]
    of_functions = ["--replay", str(CORPUS / "function.jsonl.xz"), "--export", "run.md"]
    commands = [["--list"], ["--help"], replay(tmp_path), of_functions, run]
    for command, (code, printed) in zip(
        commands, carried_out(commands, tmp_path, environment), strict=True
    ):
        assert code == 0, f"{command}: {printed}"
    result = json.loads((tmp_path / "run.json").read_bytes())
    assert result["outcome"] == "measured"
    assert "ok" in [variant["status"] for variant in result["runs"][0]["variants"]]


def test_the_live_screen_has_the_panels_that_are_there(tmp_path):
    environment = without([name for name in OPTIONAL if name != "live"], tmp_path)
    code = "from gpulab.features.live.screen import ZOOMED; print(len(ZOOMED))"
    command = [sys.executable, "-c", code]
    printed = subprocess.check_output(command, text=True, cwd=tmp_path, env=environment)
    assert int(printed) > 3


def test_few_are_needed():
    assert len(NEEDED) <= 6
    assert {*NEEDED, *REFUSED} <= {*folders()}


def test_what_is_looked_up_by_name_is_there():
    places = set()
    for pattern in ("show/*.py", "headless/*.py", "features/*/report.py"):
        for path in PACKAGE.glob(pattern):
            places |= set(re.findall(r'"([a-z_]+\.[a-z_]+):(\w+)"', path.read_text()))
    assert len(places) > 20
    for name, function in places:
        assert hasattr(present(name), function), f"{name}:{function}"
