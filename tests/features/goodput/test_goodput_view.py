"""Goodput as it is shown: bars and their letters, the columns, phases, and notes that weaken it."""

import re
from pathlib import Path

import pytest
from conftest import printed
from found import finding
from recorded import NAMES, report_of
from rich.console import Console
from rich.style import Style
from run_reports import CPU, profiled, two_variants

from gpulab.core.machine import Device
from gpulab.core.payloads import CATEGORIES
from gpulab.core.units import percent_of_roof
from gpulab.draw import bars
from gpulab.features.goodput.result import StepSource
from gpulab.features.goodput.view import goodput, phases, traces
from gpulab.headless.run import summary

HALF = {
    "goodput": 0.5,
    "partition": {"useful": 0.5, "copies": 0.1, "other": 0.4},
    "seconds": {"useful": 0.5e-3, "copies": 0.1e-3, "other": 0.4e-3},
    "step_s": 1e-3,
    "items_per_s": 1234.0,
}


def in_one_line(renderable, width=80):
    """As printed, with its lines joined."""
    return " ".join(printed(renderable, width).split())


@pytest.mark.parametrize(
    ("shares", "bar"),
    [
        ({"other": 0.5, "": 0.5}, "-" * 15 + "O" * 15),
        ({"alloc": 0.5, "preempted": 0.5}, "A" * 15 + "P" * 15),
        ({"other busy": 0.2, "data wait": 0.2, "": 0.6}, "-" * 18 + "O" * 6 + "D" * 6),
        (
            {"data": 0.2, "copy": 0.2, "sync": 0.2, "useful": 0.4},
            "u" * 12 + "c" * 6 + "d" * 6 + "s" * 6,
        ),
    ],
)
def test_a_phase_called_as_a_part_of_the_labs_own_is_still_the_authors(shares, bar):
    text = printed(phases(profiled(("v", {"phases": shares}))))
    assert bar in text.split()
    assert "O other 50%" in text or "other" not in shares


def test_a_phase_that_hardly_runs_waits():
    values = {
        "phases": {"data": 0.4, "useful": 0.6},
        "running": {"data": 0.03, "useful": 0.99},
        "waiting": ["data"],
    }
    assert "u useful 60%, d data 40% (waits)" in printed(phases(profiled(("v", values))))


def test_shares_of_phases_of_a_gpu_are_upper_bounds():
    values = {"phases": {"useful": 1.0}}
    on_gpu = profiled(("v", values), device=Device(kind="cuda", name="H200"))
    assert printed(phases(on_gpu)).startswith("phase share, an upper bound")
    assert (
        printed(phases(profiled(("v", values), device=CPU))).split("\n")[0].rstrip()
        == "phase share"
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_share_of_a_phase_is_cut(width):
    names = [f"phase_of_the_step_number_{number}" for number in range(9)]
    values = {"phases": {"useful": 0.1, **dict.fromkeys(names, 0.1)}}
    head, first, *rest = printed(
        phases(profiled(("a_variant_with_a_long_name", values))), width
    ).splitlines()
    shares_at = first.index("u useful")
    shares = "".join(line[shares_at:].strip() for line in (first, *rest)).replace(" ", "")
    assert all(len(line) <= width for line in (head, first, *rest))
    assert shares.split(",")[0] == "uuseful10%"
    assert [share[1:] for share in shares.split(",")[1:]] == [f"{name}10%" for name in names]


def test_a_column_is_there_where_any_variant_has_it_and_all_fit():
    text = in_one_line(goodput(profiled(("v", HALF))))
    assert "hidden" not in text
    assert (
        "nothing is marked useful (lab.useful()), so everything that torch computes counts" in text
    )
    more = {"hidden": 0.75, "product": 0.3}
    both = goodput(profiled(("v", HALF), ("a_rather_long_name", HALF | more)))
    assert "hidden: the share of copies behind other work" in in_one_line(both)
    row, *_ = [line for line in printed(both).splitlines() if line.startswith("a_rather")]
    assert row.split()[-5:] == ["u" * 15 + "c" * 3 + "." * 12, "30%", "75%", "1.23", "k"]
    every = HALF | more | {"efficiency": 0.6, "peak_bytes": 64 << 20}
    text = printed(goodput(profiled(("a_rather_long_name", every))))
    for word in ("60%", "30%", "75%", "1.23 k", "64.0 MiB", "u" * 8):
        assert word in text


def test_of_roof_is_the_rooflines_wherever_it_stands(tmp_path):
    compared = 0
    for name in NAMES:
        report = report_of(name, tmp_path)
        table = goodput(report)
        points = {variant.name: variant.roofline for variant in report.variants if variant.goodput}
        lines = printed(table, 200).splitlines() if table else [""]
        end = lines[0].find("of roof") + len("of roof")
        for line in lines[1:] if "of roof" in lines[0] else ():
            if not line.strip():
                break
            variant, cell = line.split()[0], line[:end].split()[-1]
            assert cell == f"{percent_of_roof(points[variant].fraction)}%", (name, variant)
            compared += 1
    assert compared >= 10


SHARES = (0.25, 0.1, 0.05, 0.1, 0.05, 0.1, 0.05, 0.1, 0.05, 0.05, 0.05, 0.05)
PARTS = dict(zip(CATEGORIES, SHARES, strict=True))
OTHERS = {"useful": 0.984, "sync": 0.016}


def colours_of_letters(renderable, width):
    """By letter the styles in which it stands alone: in the cells of a bar, and before its
    words.
    """
    console = Console(width=width, color_system="standard", force_terminal=True)
    colours = {}
    for text, style, _ in console.render(renderable):
        letters = set(text.strip())
        if len(letters) == 1 and style:
            colours.setdefault(letters.pop(), set()).add(str(style))
    return colours


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [80, 120])
def test_bars_and_their_legend_agree_in_letters_and_colours(width, ascii_only):
    """Every letter of a bar has its row, with the words of its part and the same colour."""
    variants = [
        (
            name,
            {
                "goodput": parts["useful"],
                "partition": parts,
                "seconds": parts,
                "step_s": 1.0,
                "marked": True,
            },
        )
        for name, parts in (("every", PARTS), ("others", OTHERS))
    ]
    shown = goodput(profiled(*variants))
    table = printed(shown, width).splitlines()
    (bar,) = (line.split()[2] for line in table if line.startswith("every "))
    at = table.index(next(line for line in table if line.startswith("of a step")))
    legend = {
        line[0]: line[2:].split("  ")[0].strip() for line in table[at + 1 : at + 1 + len(PARTS)]
    }
    assert set(bar) == set(legend) == {letter for letter, _ in bars.CATEGORIES.values()}
    assert list(legend.values()) == [bars.WORDS.get(name, name) for name in CATEGORIES]
    colours = colours_of_letters(shown, width)
    assert {letter: colours[letter] for letter in legend} == {
        letter: {str(Style.parse(f"not bold {style}"))}
        for letter, style in bars.CATEGORIES.values()
    }


def test_no_two_parts_have_one_letter_or_one_colour():
    letters, styles = zip(*bars.CATEGORIES.values(), strict=True)
    assert len(set(letters)) == len(set(styles)) == len(CATEGORIES)


def test_a_phase_that_is_a_part_has_its_letter_and_its_colour():
    (drawn,) = bars.phases([{"useful": 0.4, "data": 0.2, "copy": 0.2, "sync": 0.1, "": 0.1}])
    by_words = {part.words: (part.letter, part.style) for part in drawn}
    named = {"useful": "useful", "data": "data wait", "copy": "copies", "sync": "sync"}
    assert {name: by_words[name] for name in named} == {
        name: bars.CATEGORIES[part] for name, part in named.items()
    }
    assert by_words[bars.OUTSIDE][0] not in {letter for letter, _ in bars.CATEGORIES.values()}


def test_a_phase_of_the_authors_own_has_one_letter_in_every_variant():
    values = [("a", {"phases": {"update": 1.0}}), ("b", {"phases": {"upload": 0.5, "update": 0.5}})]
    text = in_one_line(phases(profiled(*values)), 120)
    assert text.count("U update") == 2
    assert "P upload" in text


def test_the_guide_has_the_letters_of_the_bars():
    page = (Path(bars.__file__).parents[1] / "guide" / "05-goodput.md").read_text()
    rows = re.findall(r"^\| (\S) {6}\| ([a-z -]+?) *\|", page, re.MULTILINE)
    assert rows == [
        (letter, bars.WORDS.get(name, name)) for name, (letter, _) in bars.CATEGORIES.items()
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_parts_are_in_seconds_and_sum_to_the_step(width):
    lines = printed(goodput(profiled(("v", HALF))), width).splitlines()
    rows = [line.split() for line in lines]
    assert ["u", "computing", "500", "µs", "50%"] in rows
    assert ["c", "copies", "100", "µs", "10%"] in rows
    assert ["step", "1.00", "ms"] in rows


def test_many_long_names_leave_room_for_the_seconds_of_the_first_and_the_last():
    names = [f"a_variant_with_a_long_name_{number}" for number in range(7)]
    text = printed(goodput(profiled(*((name, HALF) for name in names))), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("500 µs") == 5
    assert f"not shown: {names[1]}, {names[2]}" in text


def test_what_is_unreliable_is_marked_beside_its_bar_and_the_step_of_the_profiler_is_named():
    reason = finding("goodput_uncertain", "v", goodput=0.5, other=0.6, by="solo run")
    text = in_one_line(goodput(profiled(("v", HALF | {"reliable": False, "reasons": [reason]}))))
    assert "50%?" in text
    assert "the share of computing is 50%, or 60% of the step in the solo run: unreliable" in text
    own = HALF | {"reliable": True, "step_source": StepSource.PROFILER}
    text = in_one_line(goodput(profiled(("v", own))))
    assert "50%?" not in text
    assert "of the step in the profiler's process, in which kernels and copies took longer" in text


def test_variants_whose_step_marks_nothing_are_named_beside_those_that_do():
    text = in_one_line(goodput(profiled(("plain", HALF), ("marks", HALF | {"marked": True}))))
    assert "in plain nothing is marked useful" in text
    assert "is marked useful" not in in_one_line(
        goodput(profiled(("marks", HALF | {"marked": True})))
    )


def test_what_makes_a_partition_unreliable_is_one_line_for_all_variants():
    slowed = [
        (
            name,
            HALF
            | {"marked": True, "reasons": [finding("profiler_overhead", name, overhead=overhead)]},
        )
        for name, overhead in (("first", 0.3), ("second", 0.55))
    ]
    text = in_one_line(goodput(profiled(*slowed)))
    assert (
        "corrected for, but how the idle parts divide is approximate): first by 30%, second by 55%"
        in text
    )


def test_a_trace_is_named():
    report = profiled(("v", HALF | {"trace": "/tmp/t.json"}))
    assert printed(traces(report)) == "v: trace in /tmp/t.json\n"
    assert traces(profiled(("v", HALF))) is None


def test_without_a_profile_there_is_nothing_to_show():
    assert goodput(profiled(("v", {}))) is None
    assert phases(profiled(("v", {}))) is None


def test_an_unreliable_share_is_marked_in_the_summary():
    sure = {"goodput": 0.5, "reliable": True, "accurate": True}
    unreliable = {"goodput": 0.9, "reliable": False, "accurate": False}
    slowed = {
        "goodput": 0.9,
        "reliable": True,
        "accurate": False,
        "reasons": [finding("profiler_overhead", "new", overhead=0.3)],
    }
    text = printed(summary([two_variants(sure, sure)]))
    assert "50% → 50%" in text
    assert "?" not in text
    text = printed(summary([two_variants(sure, unreliable)]))
    assert "50% → 90%?" in text
    assert "? unreliable: the run's own result says why" in text
    assert "50% → 90%  " in printed(summary([two_variants(sure, slowed)]))
    assert ">" not in printed(summary([two_variants(sure, {})]))
