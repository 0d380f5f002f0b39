"""`--compare`: saved runs before and after a change; what differs comes first, then each variant."""

import json
import lzma

import pytest
from recorded import recorded_path

NAME = "h200/vector_add"


def variant_of(name, path, change=None):
    """A recording as a run file of its own, with each of its events as `change` makes it."""
    lines = lzma.decompress(recorded_path(name).read_bytes()).decode().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        if change:
            change(event)
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


def slower(variant, factor):
    def change(event):
        if event.get("type") != "Samples":
            return
        place = event["names"].index(variant) if variant in event["names"] else None
        times = zip(event["variant"], event["times_s"], strict=True)
        event["times_s"] = [time * factor if who == place else time for who, time in times]

    return change


def wrong(event):
    if event.get("type") == "Checked" and event["variant"] == "in_triton":
        event["ok"] = False


def at_minute(minute):
    def change(event):
        if event.get("type") == "RunStarted":
            event["at"] = f"2026-11-23T12:{minute:02}:00+00:00"

    return change


def with_driver(version):
    def change(event):
        if event.get("type") == "WorkerReady":
            event["environment"]["driver"] = version

    return change


@pytest.fixture
def compared(lab):
    def call(*arguments, code=0):
        finished = lab.call_over(None, "--compare", *arguments)
        assert finished.code == code, finished.stderr
        return finished.stdout

    return call


def test_a_slower_variant_is_found_over_its_own_baseline_and_comes_first(compared, lab):
    before = variant_of(NAME, lab.folder / "before.jsonl")
    after = variant_of(NAME, lab.folder / "after.jsonl", slower("in_triton", 1.1))
    text = compared(before, after)
    first, *rest = text.splitlines()
    assert first.startswith("slower: in_triton over in_torch: ")
    assert "0.909x as fast" in first
    assert "changed:" not in text
    assert [line for line in rest if "unpaired" in line]
    report = json.loads(compared(before, after, "--json"))
    verdicts = {row["variant"]: row["verdict"] for row in report["comparisons"][0]["rows"]}
    assert verdicts.pop("in_triton") == "slower"
    assert set(verdicts.values()) == {"inconclusive"}


def test_a_changed_environment_is_said_as_that(compared, lab):
    before = variant_of(NAME, lab.folder / "before.jsonl", with_driver("570.1"))
    text = compared(before, NAME)
    assert "the driver changed: 570.1 -> 580.159.04; code effect not isolated" in text
    markdown = compared(before, NAME, "--markdown", "--export", lab.folder / "changed.html")
    assert "| driver | 570.1 | 580.159.04 |" in markdown
    page = (lab.folder / "changed.html").read_text()
    assert "<td>driver</td><td>570.1</td><td>580.159.04</td>" in page
    assert "the driver changed: 570.1 -&gt; 580.159.04" in page


def test_folders_are_matched_by_scenario(compared, lab):
    for place, side in enumerate(("before", "after")):
        folder = lab.folder / side
        folder.mkdir()
        for number in range(4):
            variant_of(NAME, folder / f"{number}.jsonl", at_minute(2 * number + place))
    variant_of("h200/reduction", lab.folder / "after" / "other.jsonl")
    (lab.folder / "after" / "torn.jsonl").write_text("{")
    text = compared("before", "after")
    assert "reduction on NVIDIA H200 is only in B" in text
    assert "skipped after/torn.jsonl" in text
    assert "4 runs" in text
    assert "same: no difference beyond 1 %" in text, "four runs that are alike on either side"
    assert "minimum detectable change" not in text


def test_runs_at_separate_times_say_the_least_change_that_they_can_show(compared, lab):
    for place, side in enumerate(("before", "after")):
        (lab.folder / side).mkdir()
        for number in range(4):
            variant_of(NAME, lab.folder / side / f"{number}.jsonl", at_minute(4 * place + number))
    text = " ".join(compared("before", "after").split())
    least = "minimum detectable change of 4.5% in a speedup or of 27% in a time"
    assert f"{least}, however many runs there are" in text
    assert text.startswith("inconclusive, neither changed nor the same: no difference beyond")
    assert "no difference beyond 5 %" in text


def test_runs_of_different_lessons_are_not_compared(compared):
    text = compared(NAME, "h200/reduction", code=3)
    assert text.startswith("not compared: different lessons, vector_add and reduction")
    assert "lines that differ" not in text


def test_the_ratio_of_times_is_that_of_the_times_that_are_shown(compared, lab):
    after = variant_of(NAME, lab.folder / "after.jsonl", slower("in_torch", 1.1))
    (comparison,) = json.loads(compared(NAME, after, "--json", code=7))["comparisons"]
    row = next(row for row in comparison["rows"] if row["variant"] == "in_torch")
    assert row["ratio"]["value"] == pytest.approx(row["a"]["value"] / row["b"]["value"], rel=0.1)


def test_an_output_that_is_wrong_in_one_run_of_a_folder_is_wrong(compared, lab):
    (lab.folder / "after").mkdir()
    for number in range(2):
        variant_of(NAME, lab.folder / "after" / f"{number}.jsonl", wrong if number else None)
    report = json.loads(compared(NAME, "after", "--json", code=4))
    verdicts = {row["variant"]: row["verdict"] for row in report["comparisons"][0]["rows"]}
    assert verdicts["in_triton"] == "wrong"


def test_sides_that_are_no_runs_are_usage_errors(compared, lab):
    assert compared(NAME, code=2) == ""
    assert compared(NAME, "nothing-of-this-name", code=2) == ""
    (lab.folder / "empty").mkdir()
    assert compared("empty", NAME, code=2) == ""
