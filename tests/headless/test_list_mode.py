"""`--list`: topics, what is named first, needs that are unmet, and files that cannot be read."""

import json
import re

import pytest
from scripted import SCENARIO, CommandLine


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    return CommandLine(lab, monkeypatch, capsys)


def rows(process):
    return {row["name"]: row for row in json.loads(process.stdout)}


def test_the_list_names_topics_needs_and_errors(lab, gpulab):
    (lab.folder / "scenarios").mkdir()
    lab.write("scenarios/gpu_only.py", SCENARIO.replace('"mine",', '"mine", needs=("cuda",),'))
    lab.write(
        "scenarios/broken.py", "from gpulab import Scenario\nscenario = Scenario('x', spede=1)\n"
    )
    process = gpulab("--list")
    assert process.code == 0
    assert "launch and host overhead" in process.stdout
    assert re.search(r"^[GP] gpu_only +Scripted: ", process.stdout, re.MULTILINE)
    assert re.search(r"^[GP] needs .*: .*", process.stdout, re.MULTILINE)
    assert "broken.py\n    line 2: " in process.stdout
    assert "'spede'" in process.stdout
    listed = rows(gpulab("--list", "--json"))
    assert "line 2: " in listed["broken"]["error"]
    assert {row["schema"] for row in listed.values()} == {"gpulab.scenario/1"}
    assert listed["gpu_only"]["missing"]["values"]["need"] == "cuda"
    assert (listed["batched_matmul"]["params"]["batch"], listed["batched_matmul"]["missing"]) == (
        40,
        None,
    )


def test_what_is_named_comes_first(lab, gpulab):
    lab.write("mine.py", SCENARIO)
    lab.write("train.py", 'def step():\n    """One step."""\n\ndef of_data(data): ...\n')
    process = gpulab("--list", "train.py", "mine.py")
    assert process.code == 0
    lines = process.stdout.splitlines()
    assert lines[0] == "your own"
    assert [line.split()[0] for line in lines[1:4]] == ["train:step", "train:of_data", "mine"]
    assert not lines[4].startswith(" ")  # then the topics
    listed = list(rows(gpulab("--list", "train.py", "mine.py", "--json")).values())
    assert [row["own"] for row in listed[:3]] == [True] * 3
    assert not any(row["own"] for row in listed[3:])
    assert listed[1]["missing"]["code"] == "takes_arguments"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no Scenario and no public function"),
        ("x = 1\ndef _hidden(): ...\n", "no Scenario and no public function"),
        ("from gpulab import Scenario\nx =", "line 2: syntax error"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_a_named_file_without_anything_to_run_is_listed_with_the_reason(lab, gpulab, text, message):
    (lab.folder / "empty.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    process = gpulab("--list", "empty.py")
    assert process.code == 0
    own, path, reason = process.stdout.splitlines()[:3]
    assert (own, path.strip()) == ("your own", str(lab.folder / "empty.py"))
    assert message in reason
