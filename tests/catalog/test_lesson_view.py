"""A scenario to be read: paragraphs filled, what is set in as it is, its variants, and what can be
changed.
"""

from conftest import printed
from found import finding
from msgspec.structs import replace

from gpulab.catalog.catalog import ScenarioRow
from gpulab.catalog.view import lesson

TEXT = """Pinned memory: copies at link speed.

The copy engine cannot read
pageable memory.

    host.pin_memory()
    device.copy_(host)

The end."""
ROW = ScenarioRow(
    name="of_nobodys_course",
    lesson=TEXT,
    claim="2-6x",
    path="scenarios/pinned_memory.py",
    variants=("pageable", "pinned"),
    summaries=("The driver stages every copy.", "The engine reads it directly."),
    params={"mib": 256, "name": "x"},
    cpu={"mib": 16},
    sweep={"mib": (1, 16)},
    missing=finding("no_gpu", need="cuda"),
)


def lines_of(row, width=80):
    return [line.rstrip() for line in printed(lesson(row), width).splitlines()]


def test_a_table_of_the_variants_stands_in_place_of_their_summaries():
    table = "| variant | why |\n|---|---|\n| `pageable` | staged |\n| `pinned` | read |"
    row = replace(ROW, lesson=f"Title.\n\nBefore.\n\n{table}\n\n## After\n\nEnd.")
    lines = lines_of(row)
    start = lines.index("variant   why")
    assert lines[start + 1 : start + 3] == ["pageable  staged", "pinned    read"]
    assert lines.index("Before.") < start < lines.index("After") < lines.index("End.")
    assert "The driver stages every copy." not in " ".join(lines)
    predicting = printed(lesson(row, hides_claim=True), 80)
    assert "The driver stages every copy." in predicting
    assert "staged\n" not in predicting, "the table says what to expect"


def test_what_to_expect_is_hidden_until_somebody_has_guessed():
    table = (
        "| variant | expected (H200) | why |\n|---|---|---|\n| `a` | slow | x |\n| `b` | 7x | y |"
    )
    row = replace(ROW, lesson=f"Title.\n\nBefore.\n\n{table}\n\nEnd.")
    lines = printed(lesson(row, expected=False), 80).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("variant"))
    assert " ".join(lines[start + 1].split()) == "a g: guess first, a: show x"
    assert lines[start + 2].split() == ["b", "y"]
    assert ["claim", "g:", "guess", "first,", "a:", "show"] in [line.split() for line in lines]


def test_variants_and_facts_stand_below_the_text():
    lines = lines_of(ROW)
    variants = lines.index("pageable  The driver stages every copy.")
    assert lines[variants + 1] == "pinned    The engine reads it directly."
    assert lines[variants + 3 :] == [
        "claim         2-6x (not with the parameters for a CPU)",
        "parameters    mib=256 name=x",
        "on a CPU      mib=16",
        "sweep         mib=1,16",
        "missing here  needs cuda: no NVIDIA device in this machine",
        "file          scenarios/pinned_memory.py",
    ]


def test_a_plain_function_says_what_is_done_with_it():
    row = ScenarioRow(
        name="train:step",
        title="One step of training.",
        path="train.py",
        function=True,
        variants=("step",),
        summaries=("One step of training.",),
        missing=finding("takes_arguments", arguments=["x", "y"]),
    )
    lines = lines_of(row)
    assert lines[0] == "One step of training."
    assert "a plain function: it is timed and profiled, and compared with nothing" in lines
    wide = lines_of(row, 200)
    assert (
        "missing here  it takes arguments (x, y): --with FILE:function makes them, or give defaults"
        in wide
    )


def test_questions_come_before_their_answers():
    row = ScenarioRow(name="batched_matmul", title="t", lesson="t", path="p")
    lines = printed(lesson(row, answers=False), 80).splitlines()
    assert [line[:2] for line in lines if line[:1].isdigit()] == ["1.", "2.", "3."]
    assert lines[-1].strip() == "a shows the answers"
    assert "a graph of the same loop" not in " ".join(lines)
