"""What is installed is whole: the wheel ships scenarios, the manual and the types, and CI runs the
README's command.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from gpulab.commit import version

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_an_installed_gpulab_finds_its_scenarios_and_its_manual_from_any_folder(wheel, tmp_path):
    # which is what pip makes of one that is pure Python
    ZipFile(wheel).extractall(tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}

    def gpulab(*arguments):
        command = [sys.executable, "-P", "-m", "gpulab", *arguments]
        return subprocess.run(
            command, cwd="/", env=environment, capture_output=True, check=True
        ).stdout

    paths = {row["name"]: row["path"] for row in json.loads(gpulab("--list", "--json"))}
    assert set(paths) == {path.stem for path in (ROOT / "scenarios").glob("*.py")}
    assert all(path.startswith(str(tmp_path / "site" / "gpulab")) for path in paths.values())
    first = sorted((ROOT / "gpulab" / "guide").glob("*.md"))[0]
    page = gpulab("--guide", first.stem.partition("-")[2], "--ascii").decode()
    assert page.splitlines()[0] == first.read_text().splitlines()[0]
    assert gpulab("--version").decode() == f"gpulab {version()}\n"  # of where it was built


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(wheel):
    names = set(ZipFile(wheel).namelist())
    package = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "gpulab").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in package if name.startswith("gpulab/guide/") and name.endswith(".md")}
    assert "gpulab/py.typed" in package
    assert package <= names
    assert not {name for name in names if name.startswith(("tests/", "scenarios/"))}


def test_ci_runs_the_test_command_of_the_readme_as_written():
    commands = [
        block.split("```")[0].strip() for block in (ROOT / "README.md").read_text().split("```\n")
    ]
    tests = [command for command in commands if "pytest" in command and "\n" not in command]
    assert len(tests) == 1
    assert tests[0] in (ROOT / ".ci" / "run").read_text().splitlines()
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r"run: (.*)", workflow) == [".ci/run"]


def test_every_version_of_the_tested_set_is_pinned():
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert lines
    assert all("==" in line and "+" not in line for line in lines)
