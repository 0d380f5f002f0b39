"""What is installed is whole: the wheel ships the scenarios, and the README's test command is what CI runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_an_installed_gpulab_finds_its_scenarios_from_any_folder(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", tmp_path / "wheels", ROOT], check=True)
    wheel = next((tmp_path / "wheels").glob("*.whl"))
    subprocess.run([*pip, "install", "-q", "--no-deps", "--target", tmp_path / "site", wheel], check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-P", "-m", "gpulab", "--list", "--json"]
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, check=True)
    paths = {row["name"]: row["path"] for row in json.loads(done.stdout)}
    assert set(paths) == {path.stem for path in (ROOT / "scenarios").glob("*.py")}
    assert all(path.startswith(str(tmp_path / "site" / "gpulab")) for path in paths.values())


def test_ci_runs_the_test_command_of_the_readme_as_written():
    commands = [block.split("```")[0].strip() for block in (ROOT / "README.md").read_text().split("```\n")]
    tests = [command for command in commands if "pytest" in command and "\n" not in command]
    assert len(tests) == 1
    assert tests[0] in (ROOT / ".ci" / "run").read_text().splitlines()


def test_every_version_of_the_tested_set_is_pinned():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all("==" in line and "+" not in line for line in lines)
