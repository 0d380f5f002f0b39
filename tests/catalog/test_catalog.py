"""Which scenarios there are: the user's own first, the first of a name, and every broken file as an
entry.
"""

from pathlib import Path

import pytest
from found import finding

from gpulab.catalog import catalog as catalogs
from gpulab.catalog.catalog import (
    ScenarioNotFoundError,
    by_name,
    catalog,
    find,
    read_again,
    read_file,
    search,
)

EXAMPLE = (Path(__file__).parent / "example.py").read_text()
HEAD = "from gpulab import MiB, Scenario\n"
LESSONS_BY_WORDS = {
    "gemm": "batched_matmul",
    "GEMM": "batched_matmul",
    "fusion": "fused_softmax",
    "fuse": "fused_softmax",
    "nsys": "utilization",
    "nsight": "utilization",
    "ncu": "roofline_tour",
    "DataLoader": "input_pipeline",
    "AMP": "autocast_training",
    "mixed precision": "autocast_training",
    "flash attention": "attention",
    "kv cache": "kv_cache",
    "all-reduce": "gradient_buckets",
    "allreduce": "gradient_buckets",
    "NCCL": "collectives",
    "recompile": "dynamic_shapes",
    "OOM": "gradient_accumulation",
    "h2d": "pinned_memory",
    "PCIe": "pinned_memory",
    "launch overhead": "batched_matmul",
    "occupancy": "occupancy",
    "tensor core": "tensor_core_shapes",
    "fsdp": "hybrid_sharding",
    "spill": "launch_bounds",
    "straggler": "late_rank",
    "why is my dataloader slow": "input_pipeline",
    "What is a tile?": "shared_memory_tiling",
    "what's an SM": "utilization",
    "warp": "coalescing",
    "HBM": "roofline_tour",
    "pointer chasing": "memory_hierarchy",
    "register pressure": "register_remedies",
    ".to(device)": "repeated_to_device",
    "what is a stream": "double_buffering",
    "my GPU waits for the DataLoader": "input_pipeline",
    "why does my model recompile": "dynamic_shapes",
}
FUNCTIONS = "def step(): 'One step.'\ndef wants(x, y=2): ...\ndef _hidden(): ...\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_nothing_is_executed(tmp_path):
    path = write(tmp_path / "evil.py", f"open({str(tmp_path / 'ran')!r}, 'w')\n" + EXAMPLE)
    assert read_file(path).scenario
    assert not (tmp_path / "ran").exists()


def test_a_broken_file_does_not_hide_the_others(tmp_path):
    write(tmp_path / "scenarios" / "good.py", EXAMPLE)
    write(tmp_path / "scenarios" / "bad.py", HEAD + "scenario = Scenario(\n")
    write(tmp_path / "scenarios" / "helper.py", "x = 1\n")
    entries = {entry.name: entry for entry in catalog()}
    assert entries["bad"].error
    assert entries["bad"].row.error.startswith("line 2: ")
    assert entries["good"].scenario
    assert "helper" not in entries
    assert "batched_matmul" in entries


def test_the_first_of_a_name_is_taken(tmp_path, monkeypatch):
    for place in ("scenarios", "env", "given"):
        write(tmp_path / place / "optimizer_step.py", EXAMPLE)
    monkeypatch.setenv("GPULAB_SCENARIOS", str(tmp_path / "env"))
    assert find("optimizer_step").path.parent.name == "scenarios"
    (tmp_path / "scenarios" / "optimizer_step.py").unlink()
    assert find("optimizer_step").path.parent.name == "env"
    folders = {
        entry.path.parent.name
        for entry in catalog([Path("given")])
        if entry.name == "optimizer_step"
    }
    assert folders == {"given"}


def test_what_is_named_comes_first_in_its_order_and_all_else_by_topic(tmp_path):
    second = write(tmp_path / "b_second.py", EXAMPLE)
    write(
        tmp_path / "folder" / "z_last.py", EXAMPLE.replace('"data movement"', '"a topic of mine"')
    )
    write(tmp_path / "folder" / "a_first.py", EXAMPLE)
    entries = catalog([second, tmp_path / "folder"])
    assert [(entry.name, entry.own) for entry in entries[:3]] == [
        ("b_second", True),
        ("a_first", True),
        ("z_last", True),
    ]
    assert not any(entry.own for entry in entries[3:])
    topics = list(dict.fromkeys(entry.scenario.topic for entry in entries[3:]))
    assert topics == [topic for topic in catalogs.TOPICS if topic in topics]


def test_each_public_function_of_a_named_file_without_a_scenario_is_an_entry(tmp_path):
    path = write(tmp_path / "train.py", FUNCTIONS)
    step, wants = catalog([path])[:2]
    assert (step.name, step.function, step.own, step.row.function) == (
        "train:step",
        "step",
        True,
        True,
    )
    assert (step.title, step.row.summaries, step.missing) == ("One step.", ("One step.",), None)
    assert wants.missing == finding("takes_arguments", arguments=["x"])
    assert wants.title == "train:wants"
    write(tmp_path / "d" / "train.py", FUNCTIONS)
    folder = write(tmp_path / "d" / "scale.py", EXAMPLE).parent
    assert [entry.name for entry in catalog([folder]) if entry.own] == ["scale"]


def test_a_folder_that_is_named_and_has_nothing_to_run_is_an_error(tmp_path):
    folder = write(tmp_path / "d" / "train.py", FUNCTIONS).parent
    with pytest.raises(ScenarioNotFoundError, match="d: no scenario in this folder"):
        catalog([folder])


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        (FUNCTIONS, "def step(: ...\n", "syntax error"),
        (FUNCTIONS, "def others(): ...\n", "there is no function step any more"),
        (EXAMPLE, FUNCTIONS, "no Scenario and no public function"),
        ("n = 3\n", "n = 4\n", "no Scenario and no public function"),
        ("n = 3\n", EXAMPLE, None),
        (EXAMPLE, EXAMPLE.replace("Pinned", "Locked"), None),
    ],
)
def test_an_entry_that_is_read_again_stays_what_it_was_or_has_an_error(
    tmp_path, before, after, error
):
    path = write(tmp_path / "x.py", before)
    entry = catalog([path])[0]
    path.write_text(after)
    again = read_again(entry)
    assert (again.name, again.function, again.own) == (entry.name, entry.function, True)
    assert again.row.function == (entry.function is not None and error is None)
    assert error in again.row.error if error else again.row.error is None


def test_a_close_name_is_suggested():
    with pytest.raises(ScenarioNotFoundError, match="did you mean batched_matmul"):
        find("batched_matmull")
    with pytest.raises(ScenarioNotFoundError, match=r"there is no file nowhere\.py"):
        find("nowhere.py")


def test_a_file_without_a_scenario_is_an_error_when_it_is_to_be_run(tmp_path):
    write(tmp_path / "mine.py", "def step(): ...\nscale = step\n")
    with pytest.raises(ScenarioNotFoundError, match=r"run mine\.py:FUNCTION, one of step$"):
        find("mine.py")
    write(tmp_path / "mine.py", "import os\n")
    with pytest.raises(
        ScenarioNotFoundError, match=r"mine\.py has no Scenario and no function to time"
    ):
        find("mine.py")


def test_a_row_has_what_lists_show_and_nothing_that_drives_a_terminal(tmp_path):
    text = EXAMPLE.replace("2-6x faster", "\\x1b[31m2-6x").replace(
        "Pinned memory:", "\x1b[1mPinned memory:"
    )
    row = read_file(write(tmp_path / "pinned.py", text)).row
    assert (row.name, row.topic, row.claim) == ("pinned", "data movement", "2-6x transfers")
    assert row.title == "Pinned memory: page-locked host buffers copy at link speed."
    assert (row.variants, row.params) == (("pageable", "pinned"), {"mib": 256})
    assert row.summaries[0] == "Pageable source: the driver stages every copy."


WITHOUT_NUMBERS = {"dynamic_shapes", "jax_jit"}
"""Lessons of which the sources say nothing that a run could be held against."""


def test_what_ships_can_be_read_and_says_what_it_claims():
    shipped = [read_file(path) for path in catalogs.folders()[-1].glob("*.py")]
    assert len(shipped) >= 2
    for entry in shipped:
        assert entry.error is None
        assert entry.scenario.topic in catalogs.TOPICS
        assert entry.scenario.claim or entry.name in WITHOUT_NUMBERS
        assert entry.scenario.smoke
        assert len(entry.text.lesson) > 200
        assert all(variant.summary for variant in entry.scenario.variants.values())


def test_words_of_the_field_lead_to_a_lesson():
    entries = catalog()
    found = {words: by_name(search(entries, words))[0] for words in LESSONS_BY_WORDS}
    assert found == LESSONS_BY_WORDS
