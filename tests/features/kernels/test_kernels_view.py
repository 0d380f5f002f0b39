"""What the compiler made of kernels, as a person reads it: a row a variant, and a line for each
difference.
"""

import io

import pytest
from conftest import printed
from rich.console import Console
from run_reports import run, variant

from gpulab.core.payloads import KernelCode
from gpulab.features.kernels.differences import Change, KernelDifference
from gpulab.features.kernels.view import (
    change_words,
    difference_words,
    instruction_mix,
    kernel_page,
    kernels,
)
from gpulab.report.report import Time


def code(name="copy", registers=32, **figures):
    return KernelCode(**{"name": name, "arch": "sm_90", "registers": registers, **figures})


def page(variants, against=None, width=80):
    return [
        line.rstrip() for line in printed(kernel_page(variants, against or {}), width).splitlines()
    ]


def mix(**instructions):
    return instruction_mix(code(instructions={"all": 9, **instructions}))


def line(*changes):
    made = [Change(what=what, before=before, after=after) for what, before, after in changes]
    return difference_words(KernelDifference(against="old", changes=made))


def test_the_table_has_what_the_neediest_kernel_of_a_variant_takes():
    lines = page(
        {
            "old": [code(threads=256, occupancy=1.0, limiter="threads")],
            "new": [
                code(
                    "one", 40, threads=256, occupancy=0.75, limiter="registers", shared_bytes=1023
                ),
                code(
                    "two",
                    20,
                    threads=256,
                    occupancy=0.125,
                    limiter="shared memory",
                    spill_bytes=8,
                    shared_bytes=1536,
                ),
            ],
            "unknown": [code()],
        }
    )
    assert lines[:4] == [
        "kernels of a variant  registers  spilled    shared               occupancy",
        "old                          32      0 B       0 B                   100 %",
        "new                          40      8 B  1.50 KiB  12.5 % (shared memory)",
        "unknown                      32      0 B       0 B",
    ]
    assert (
        lines[-1] == "counted in the SASS for sm_90, each instruction once, however often it runs"
    )


def test_each_variant_has_its_instructions_and_each_but_the_first_its_difference():
    lines = page(
        {"old": [code(instructions={"all": 4})], "b": [code("b", 40)], "c": [code(), code("d")]},
        {"c": "old"},
    )
    first = lines.index("old  copy 4 instructions")
    assert lines[first + 1 : first + 6] == [
        "b    0 instructions",
        "c    copy 0 instructions; d 0 instructions",
        "",
        "b  against old: registers 32 → 40",
        "c  against old: kernels 1 → 2",
    ]


def test_a_variant_without_kernels_is_not_there():
    assert kernel_page({}, {}) is None
    assert kernel_page({"a": []}, {}) is None
    lines = page({"a": [], "b": [code()]}, {"b": "a"})
    assert [text.split()[0] for text in lines if text][:3] == ["kernels", "b", "b"]
    assert not any("against" in text for text in lines)


def test_instructions_that_move_data_come_first_and_one_is_singular():
    found = mix(
        fma=8, barrier=1, load_128=2, store_32=1, mma=1, add_or_multiply=1, special=1, unheard_of=1
    )
    assert found == (
        "9 instructions: 2 128-bit loads, 1 32-bit store, 1 mma instruction, 8 FMAs, 1 barrier, "
        "1 add or multiply, 1 special function, 1 unheard of"
    )
    assert mix() == "9 instructions"
    assert instruction_mix(code()) == "0 instructions"


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("async_copy", "asynchronous copy"),
        ("bulk_copy", "bulk copy"),
        ("branch", "branch"),
        ("divergent_branch", "divergent branch"),
        ("loop", "loop"),
        ("atomic", "atomic"),
        ("shuffle", "shuffle"),
        ("local_load", "local load"),
        ("read_only_load", "read-only load"),
        ("shared_store_64", "64-bit shared store"),
        ("other", "other"),
    ],
)
def test_words_for_one_of_a_class(kind, one):
    assert mix(**{kind: 1}) == f"9 instructions: 1 {one}"
    assert not mix(**{kind: 2}).endswith(f" {one}") or kind == "other"


@pytest.mark.parametrize(
    ("what", "before", "after", "words"),
    [
        ("load_128", 0, 4, "128-bit loads 0 → 4"),
        ("shared_store_32", 2, None, "32-bit shared stores 2 → 0"),
        ("load_use", 0.125, 1.0, "used of each sector loaded 12.5 → 100 %"),
        ("store_use", 1 / 3, 0.5, "used of each sector stored 33.3 → 50 %"),
        ("occupancy", 0.5, None, "occupancy 50 → n/a %"),
        ("bank_conflicts", 1, 32, "bank conflicts none → 32-way"),
        ("bank_conflicts", 2, None, "bank conflicts 2-way → none"),
        ("spill_bytes", 0, 1023, "spilled registers 0 B → 1023 B"),
        ("shared_bytes", 0, 49152, "shared memory 0 B → 48.0 KiB"),
        ("threads", 256, 1024, "threads a block 256 → 1024"),
        ("registers", 32, 255, "registers 32 → 255"),
        ("wgmma", 0, 8, "wgmma instructions 0 → 8"),
        ("all", 40, 40, "40 instructions in both, with other operands"),
        ("all", 40, 44, "instructions 40 → 44"),
        ("kernels", 2, 1, "kernels 2 → 1"),
        ("unheard_of", 1, 2, "unheard of 1 → 2"),
    ],
)
def test_a_change_is_said_with_its_unit(what, before, after, words):
    assert change_words(Change(what=what, before=before, after=after)) == words


def test_nothing_that_differs_is_the_same_code():
    assert line() == "the same code and launch"


def test_of_more_than_six_changes_the_most_telling_and_the_resources_stay():
    telling = [(f"load_{bits}", 0, 1) for bits in (128, 64, 32, 16, 8)] + [
        ("fma", 1, 2),
        ("branch", 1, 2),
    ]
    resources = [("registers", 32, 64), ("occupancy", 1.0, 0.5)]
    said = line(*telling, *resources)
    assert said == (
        "128-bit loads 0 → 1; 64-bit loads 0 → 1; 32-bit loads 0 → 1; 16-bit "
        "loads 0 → 1; registers 32 → 64; occupancy 100 → 50 %; 3 more"
    )
    assert line(*telling[:6]).count(";") == 5
    assert line(*telling).endswith("FMAs 1 → 2; 1 more")
    assert line(*telling[:4], *resources).endswith("occupancy 100 → 50 %")


def test_of_a_run_the_times_stand_beside_them():
    difference = KernelDifference(against="old", changes=[])
    report = run(
        variant("old", kernels=[code()], time_s=Time(median=2e-3)),
        variant("plain"),
        variant(
            "new", kernels=[code(), code()], kernel_difference=difference, items=1.0, time_s=None
        ),
    )
    lines = [text.rstrip() for text in printed(kernels(report)).splitlines()]
    assert lines[0].split()[3:] == [
        "variant",
        "time/step",
        "registers",
        "spilled",
        "shared",
        "occupancy",
    ]
    assert lines[1].split()[:3] == ["old", "2.00", "ms"]
    assert lines[2].split()[:2] == ["new", "32"]
    assert "new  against old: the same code and launch" in lines
    assert not any("plain" in text for text in lines)
    assert kernels(run(variant("old"), variant("new"))) is None


def test_where_lines_are_whole_none_is_cut_and_names_stay_in_a_column():
    long = "a" * 30
    made = kernel_page({"old": [code()], long: [code("b" * 90, 40)]}, {})
    console = Console(width=80, file=io.StringIO())
    console.print(made, soft_wrap=True)
    lines = console.file.getvalue().splitlines()
    assert f"{long}  {'b' * 90} 0 instructions" in lines
    assert f"{'old':20}  copy 0 instructions" in lines
    assert f"{long}  against old: registers 32 → 40" in lines


@pytest.mark.parametrize("width", [40, 80])
def test_on_a_narrow_screen_every_line_fits_and_what_goes_on_stands_below_the_text(width):
    instructions = {"all": 99, **{f"load_{bits}": 2 for bits in (128, 64, 32, 16, 8)}}
    lines = page(
        {"old": [code(instructions=instructions)], "new": [code("a" * 50, 40)]}, width=width
    )
    assert max(map(len, lines)) <= width
    start = next(place for place, text in enumerate(lines) if text.startswith("old  copy 99"))
    assert lines[start + 1].startswith("     ")
