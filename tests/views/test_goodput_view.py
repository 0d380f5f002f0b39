"""Goodput as it is shown: bars and their letters, the columns, operations side by side, and marks of what to doubt."""

import pytest
from conftest import printed
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpulab.model.compare import Comparison
from gpulab.model.goodput import CATEGORIES
from gpulab.model.operations import Operation
from gpulab.model.result import UNDER_WAY, Control, Goodput, RunResult, Sweep, Time, VariantResult
from gpulab.views.goodput import bar, goodput, operations, phases, short
from gpulab.views.listing import mark
from gpulab.views.summary import line, summary
from gpulab.views.sweep import sweep
from gpulab.views.table import table
from gpulab.views.text import Glyphs

GLYPHS = Glyphs()


@given(st.lists(st.floats(0.01, 1), min_size=len(CATEGORIES), max_size=len(CATEGORIES)))
def test_a_bar_is_always_as_long_and_in_proportion(weights):
    shares = {name: one / sum(weights) for name, one in zip(CATEGORIES, weights, strict=True)}
    text = bar(shares.items()).plain
    assert len(text) == 30
    for letter, name in (("u", "useful"), ("d", "data wait"), ("l", "launch-bound")):
        assert abs(text.count(letter) - 30 * shares[name]) <= 1


def test_a_mark_of_the_authors_own_is_never_taken_for_another():
    assert bar([("update", 1.0)]).plain == "x" * 30
    assert bar([("\x1b[31m", 1.0)]).plain == "x" * 30


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("aten::mm", "aten::mm"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, array<char*, 3ul> "
            ">(int, at::native::CUDAFunctor_add<float>)",
            "vectorized_elementwise_kernel CUDAFunctor_add",
        ),
        ("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*, int)", "softmax_warp_forward"),
        ("sm80_xmma_gemm_f32f32_tilesize64x64x8", "sm80_xmma_gemm_f32f32_tilesize64x64x8"),
    ],
)
def test_a_kernels_name_fits_on_a_line(name, shown):
    assert short(name) == shown


def run_of(*variants, **changes):
    """A run of variants, which are names with what their goodput has."""
    made = [
        VariantResult(name=name, status="ok", items=2.0, time_s=Time(median=1e-3), goodput=Goodput(**has))
        for name, has in variants
    ]
    return RunResult(**{"scenario": "s", "outcome": "measured", "variants": made, **changes})


@pytest.mark.parametrize(
    ("shares", "shown"),
    [
        ({"other": 0.5, "": 0.5}, "." * 15 + "x" * 15),
        ({"alloc": 0.5, "preempted": 0.5}, "x" * 30),
        ({"other busy": 0.2, "data wait": 0.2, "": 0.6}, "." * 18 + "x" * 12),
        ({"data": 0.2, "copy": 0.2, "sync": 0.2, "useful": 0.4}, "u" * 12 + "c" * 6 + "d" * 6 + "s" * 6),
    ],
)
def test_a_phase_called_as_a_part_of_the_labs_own_is_still_the_authors(shares, shown):
    text = printed(phases(run_of(("v", {"phases": shares})), GLYPHS))
    assert shown in text.split()
    assert "other 50%" in text or "other" not in shares


def test_a_phase_that_hardly_runs_waits():
    of = {"phases": {"data": 0.4, "useful": 0.6}, "ran": {"data": 0.03, "useful": 0.99}}
    assert "data 40% (waits), useful 60%" in printed(phases(run_of(("v", of)), GLYPHS))


def test_a_column_is_there_where_any_variant_has_it_and_all_fit():
    has = {"goodput": 0.5, "partition": {"useful": 0.5, "copies": 0.1, "other": 0.4}, "items_per_s": 1234.0}
    plain = printed(goodput(run_of(("v", has)), GLYPHS))
    assert "hidden" not in plain
    assert "everything that torch computes counts" in " ".join(plain.split())
    more = {"hidden": 0.75, "product": 0.3}
    text = printed(goodput(run_of(("v", has), ("a_rather_long_name", has | more)), GLYPHS))
    assert "hidden: the share of copies behind other work" in " ".join(text.split())
    (row,) = [line for line in text.splitlines() if line.startswith("a_rather")]
    assert row.split()[-5:] == ["u" * 15 + "c" * 3 + "." * 12, "30%", "75%", "1.23", "k"]
    every = has | more | {"efficiency": 0.6, "peak_bytes": 64 << 20}
    text = printed(goodput(run_of(("a_rather_long_name", every)), GLYPHS))
    for word in ("60%", "30%", "75%", "1.23 k", "64.0 MiB", "u" * 8):
        assert word in text


def row(name, self_s, calls=10, share=0.25, shapes=""):
    return Operation(name=name, calls=calls, self_s=self_s, share=share, shapes=shapes, on_device=False)


def named(*names, **changes):
    """Each variant's mm takes its place in milliseconds."""
    rows = ([row("aten::mm", 1e-3 * (i + 1), shapes=f"{i}x{i}"), row("aten::add", 1e-6)] for i in range(len(names)))
    variants = [(name, {"operations": found}) for name, found in zip(names, rows, strict=True)]
    return operations(run_of(*variants, **changes), GLYPHS)


def cells(text, start):
    (found,) = [line.split() for line in text.splitlines() if line.startswith(start)]
    return found


def test_operations_of_one_variant_have_their_shapes():
    rows = [row("aten::mm", 2e-3, shapes="8x8, 8x8"), row("aten::mm", 1e-3, shapes="[4, 4]"), row("k", 1e-6)]
    text = printed(operations(run_of(("v", {"operations": rows})), GLYPHS))
    first, *found = [line.split() for line in text.splitlines()]
    assert first == ["operations", "of", "a", "step", "calls", "self", "share", "shapes"]
    assert found[0] == ["aten::mm", "10", "2.00", "ms", "25%", "8x8,", "8x8"]
    assert found[1][-2:] == ["[4,", "4]"]
    assert "v" not in text.split()


def test_operations_of_two_variants_stand_side_by_side():
    text = printed(named("base", "other"))
    assert text.splitlines()[0].split() == ["base", "other"]
    assert text.splitlines()[1].split()[4:] == ["calls", "self", "share"] * 2
    assert cells(text, "aten::mm") == ["aten::mm", "10", "1.00", "ms", "25%", "10", "2.00", "ms", "25%"]
    assert "shapes" not in text


@pytest.mark.parametrize("name", ["aten::mm", "a_kernel_of_a_long_name_that_nobody_reads_to_its_end"])
def test_operations_fit_whatever_the_width(name):
    for count in range(1, 9):
        variants = [
            (f"a_long_variant_{i}", {"operations": [row(name, 1e-3, shapes="8x8, " * 9)]}) for i in range(count)
        ]
        for width in (60, 80, 100, 120, 160):
            for glyphs in (GLYPHS, Glyphs(ascii=True)):
                text = printed(operations(run_of(*variants), glyphs), width)
                assert all(len(line) <= width for line in text.splitlines())
                assert text.count("1.00 ms") == min(count, 5)
                assert ("shapes" in text) == (width >= (80 if count == 1 else 120))
                assert text.isascii() or not glyphs.ascii


def test_operations_of_many_variants_are_those_of_the_baseline_and_the_last():
    text = printed(named("base", "one", "two", "three", "four", "five", "all_together"), 120)
    assert text.splitlines()[0].split() == ["base", "three", "four", "five", "all_together"]
    shown = [word for ms in ("1.00", "4.00", "5.00", "6.00", "7.00") for word in (ms, "ms", "25%")]
    assert cells(text, "aten::mm") == ["aten::mm", *shown, "6x6"]  # the shapes of the longest
    assert "not shown: one, two" in text
    narrow = printed(named("base", "one", "two", "three", "four", "five", "all"))
    assert cells(narrow, "aten::mm") == ["aten::mm", *(word for word in shown if word != "25%")]
    assert "not shown" not in printed(named("base", "one", "two", "three", "four"))


def test_operations_are_of_an_item_where_that_is_compared():
    text = printed(named("base", "other", per="item"))
    assert "operations of an item" in text
    assert cells(text, "aten::mm") == ["aten::mm", "5", "500", "µs", "25%", "5", "1.00", "ms", "25%"]


def compared(speedup=1.5, verdict="faster"):
    return Comparison(
        variant="new", against="old", speedup=speedup, low=1.4, high=1.6, mde=None, pairs=9, dropped=0, verdict=verdict
    )


def two(before, after, **changes):
    return run_of(("old", before), ("new", after), **{"comparisons": [compared()], **changes})


def test_a_share_to_be_doubted_is_marked_in_the_summary():
    sure, unreliable = {"goodput": 0.5, "reliable": True}, {"goodput": 0.9, "reliable": False}
    doubted = {"goodput": 0.9, "reliable": True, "why": "the profiler makes its step 30% longer"}
    text = printed(summary([two(sure, sure)], GLYPHS))
    assert "50% > 50%" in text
    assert "?" not in text
    for other in (unreliable, doubted):
        text = printed(summary([two(sure, other)], GLYPHS))
        assert "50% > 90%?" in text
        assert "? doubted: see why in its own result" in text
    assert ">" not in printed(summary([two(sure, {})], GLYPHS))


@pytest.mark.parametrize("quick", [False, True])
def test_every_row_of_a_quick_run_has_its_star(quick):
    run = two({}, {}, quick=quick, control=Control(speedup=1.0, verdict="same"), params={"n": 1})
    star = "*" * quick
    rows = [line.split()[-1] for line in printed(table(run, GLYPHS)).splitlines()[1:]]
    assert rows == [star or "baseline", f"faster{star}", f"same{star}"]
    assert f"faster{star}" in printed(table(replace(run, outcome=UNDER_WAY), GLYPHS)).split()
    note = "* a quick run: short, with wide intervals"
    for text in (printed(summary([run], GLYPHS)), printed(sweep(Sweep(scenario="s", parameter="n"), [run], GLYPHS))):
        assert f"faster{star}" in text.split()
        assert (note in text) == quick
    assert f"measured{star}" in line(run, GLYPHS, 1, 2).plain.split()
    assert mark(run)[0] == f"1.50x{star}"
    unsure = two({}, {}, quick=quick, comparisons=[compared(1.003, "inconclusive")])
    assert mark(unsure)[0] == f"1.00x?{star}"
    assert mark(run_of(("v", {}), quick=quick))[0] == f"done{star}"
