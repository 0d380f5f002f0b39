"""Thresholds by flags and by a file, their three outcomes, and what a CI reads of them."""

import json
import lzma
import re
import shutil
import subprocess
from importlib.resources import files
from xml.etree import ElementTree

import pytest
from recorded import recorded_path
from scripted import SCENARIO, CommandLine
from test_compare import NAME, slower, variant_of, with_driver

HOSTILE = "<b>|`x`@all"


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


@pytest.fixture
def before(lab):
    return variant_of(NAME, lab.folder / "before.jsonl")


@pytest.fixture
def after(lab):
    return variant_of(NAME, lab.folder / "after.jsonl", slower("in_triton", 1.2))


@pytest.mark.parametrize(
    ("flags", "code", "says"),
    [
        (["--fail-below", "after=1.9x"], 0, "passed: the interval of after begins at"),
        (["--fail-below", "after=100x"], 5, "lies below the required 100x"),
        (
            ["--fail-below", "1.2x", "--fail-below", "after=2"],
            6,
            "not shown to reach the required 2x",
        ),
        (
            ["--fail-below", "nobody=1.2x"],
            2,
            "there is no variant nobody; the variants: after, before",
        ),
    ],
)
def test_a_variant_has_a_threshold_of_its_own(gpulab, flags, code, says):
    process = gpulab("--run", "mine.py", "--telemetry", "off", *flags)
    assert process.code == code
    assert says in process.stdout + process.stderr


def test_a_variant_that_one_of_several_scenarios_has(gpulab, lab):
    lab.write("other.py", SCENARIO.replace("def after(", "def faster("))
    both = ("--run", "mine.py", "other.py", "--telemetry", "off")
    assert gpulab(*both, "--fail-below", "faster=1.9x").code == 0


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("fail_below = 100", 5, "required 100x"),
        (
            'fail_below = 100\n[mine]\nfail_below = "1.9x"\n[other]\nfail_below = 2',
            0,
            "thresholds: gpulab.toml",
        ),
        ("[precision]\nfail_below = 100", 0, ""),
        ("[mine]\nfail_bellow = 1", 2, "gpulab.toml: [mine]: fail_bellow: unknown key"),
        ("[mime]\nfail_below = 1", 2, "gpulab.toml: [mime]: there is no scenario of this name"),
        ("[mine]\nfail_below.afer = 1", 2, "[mine]: fail_below.afer: there is no variant afer"),
        ("[mine]\nfail_below = true", 2, "[mine]: fail_below = True: write a number or a text"),
        ("fail_if_slower = 3", 2, "fail_if_slower = 3: write a share, such as 3%"),
        ("[mine", 2, "gpulab.toml: Expected"),
    ],
)
def test_a_file_of_thresholds(gpulab, lab, text, code, says):
    lab.write("gpulab.toml", text)
    (lab.folder / "bench").mkdir()
    lab.write("bench/other.py", "")
    process = gpulab("--run", "mine.py", "--telemetry", "off")
    assert process.code == code
    assert says in process.stdout + process.stderr


def test_slower_than_allowed_fails_holds_or_is_inconclusive(gpulab, before, after):
    def of(*arguments):
        process = gpulab("--compare", *arguments, "--json", "out.json")
        assert process.code == process.result["exit_code"]
        return process.code, {gate["outcome"] for gate in process.result["gates"]}

    assert of(before, after, "--fail-if-slower") == (5, {"fails", "inconclusive"})
    assert of(before, after, "--fail-if-slower", "90%") == (0, {"holds"})
    assert of(before, before, "--fail-if-slower") == (6, {"inconclusive"})
    assert of(before, after, "--fail-below", "in_triton=0.5x") == (0, {"holds"})
    assert of(before, after) == (0, set())


def test_a_changed_driver_is_no_regression(gpulab, lab, before):
    def change(event):
        with_driver("999.1")(event)
        slower("in_triton", 2.0)(event)

    changed = variant_of(NAME, lab.folder / "changed.jsonl", change)
    process = gpulab("--compare", before, changed, "--fail-if-slower", "30%")
    assert process.code == 6
    assert "slower: in_triton over in_torch" in process.stdout
    assert "gate inconclusive: in_triton: at most 30 % slower" in process.stdout
    assert "driver changed between A and B: code effect not isolated" in process.stdout


def test_the_file_for_a_ci_holds_what_was_measured_whatever_it_is_called(gpulab, lab, before):
    def rename(event):
        text = json.dumps(event).replace('"in_triton"', json.dumps(HOSTILE))
        event |= json.loads(text)

    renamed = [variant_of(NAME, lab.folder / f"{side}.jsonl", rename) for side in "ab"]
    junit = ("--junit", "j.xml")
    process = gpulab("--compare", *renamed, "--fail-if-slower", "90%", *junit, "--markdown")
    assert process.code == 0
    named = re.escape("| \\<b\\>\\|\\`x\\`@<!-- -->all |")
    assert re.search(rf"{named} [\d.]+x \|", process.stdout)
    suite = ElementTree.parse(lab.folder / "j.xml").getroot()[0]
    assert suite.attrib == {
        "name": "vector_add",
        "tests": "3",
        "failures": "0",
        "errors": "0",
        "skipped": "0",
    }
    assert f"{HOSTILE}, after over before" in {case.get("name") for case in suite}


def test_the_file_for_a_ci_of_runs(gpulab, lab):
    junit = ("--junit", "j.xml")
    process = gpulab("--run", "mine.py", "--telemetry", "off", "--fail-below", "100x", *junit)
    assert process.code == 5
    cases = ElementTree.parse(lab.folder / "j.xml").getroot()[0]
    failure = cases[1].find("failure")
    assert (cases[1].get("name"), failure.get("type")) == ("after over before", "fail below")
    assert failure.get("message").startswith("after: at least 100x, measured 2.0")
    process = gpulab("--run", "mine.py", "--telemetry", "off", "--junit", "nowhere/j.xml")
    assert process.code == 2


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_the_lines_of_jq_in_the_guide_make_the_files_of_others(gpulab, lab):
    assert gpulab("--replay", "batched_matmul", "--json", "result.json").code == 0
    page = (files("gpulab") / "guide" / "08-ci.md").read_text()
    lines = re.findall(r"^jq '.*?' result\.json$", page, re.MULTILINE | re.DOTALL)
    benchmark, bencher = (
        json.loads(subprocess.check_output(line, shell=True, cwd=lab.folder)) for line in lines
    )
    (run,) = json.loads((lab.folder / "result.json").read_text())["runs"]
    assert {entry["name"]: entry["value"] for entry in benchmark} == {
        f"batched_matmul/{entry['variant']} over {entry['against']}": 1 / entry["speedup"]["value"]
        for entry in run["comparisons"]
    }
    times = {name: measured["latency"] for name, measured in bencher.items()}
    assert times.keys() == {f"batched_matmul/{variant['name']}" for variant in run["variants"]}
    for time in times.values():
        assert 1_000 < time["lower_value"] <= time["value"] <= time["upper_value"]


def test_no_file_for_a_ci_destroys_a_run_file(gpulab, lab, before, after):
    run = lab.folder / "run.jsonl"
    run.write_bytes(lzma.decompress(recorded_path(NAME).read_bytes()))
    process = gpulab("--compare", before, after, "--junit", run)
    assert process.code == 2
    assert "that is a run file, which is never overwritten" in process.stderr
