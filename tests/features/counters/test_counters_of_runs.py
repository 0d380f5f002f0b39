"""What was counted, in the report of a run: beside declared work, and beside what the code says."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from recorded import recorded_path
from rich.console import Console

from gpulab.core.run_file import read_run_file
from gpulab.features.counters.events import KernelsCounted
from gpulab.features.counters.metrics import together
from gpulab.features.counters.reading import read
from gpulab.features.counters.view import counters, kernels
from gpulab.report.build import build_report, fold_all
from gpulab.show.parts import Shown, Target, result

CORPUS = Path(__file__).parents[2] / "corpus"
RAW = Path(__file__).parent / "exports" / "lessons.raw.csv"
OF_VARIANTS = {"stride_32": ["strided"], "coalesced": ["coalesced"], "stride_2": ["padded"] * 4}
"""The kernel of an export that stands for each of these; the lesson has one kernel."""


@pytest.fixture(scope="module")
def report():
    """Of a recorded run of an H200, as if it had been counted."""
    *events, end = read_run_file(CORPUS / "older" / "coalescing.jsonl.xz").events
    exported = {kernel.name.partition("(")[0]: kernel for kernel in read(RAW).kernels}
    for variant, names in OF_VARIANTS.items():
        kernels = [
            replace(exported[name], name=f"void scale<(int){place}>(const float *)")
            for place, name in enumerate(names)
        ]
        counted = KernelsCounted(
            variant=variant, kernels=kernels, together=together(kernels), report="a.ncu-rep"
        )
        events.append(replace(counted, t=end.t))
    return build_report(fold_all([*events, end]))


def printed(view, report):
    console = Console(width=80)
    with console.capture() as captured:
        console.print(view(report))
    return captured.get().splitlines()


def test_counted_bytes_stand_beside_the_declared_ones(report):
    declared = report.variant("stride_32").bytes
    counted = 1_608_038_000 + 536_248_576  # of DRAM, read and written
    assert report.variant("stride_32").counters.dram_of_declared == counted / declared
    assert report.variant("stride_8").counters is None
    (line,) = (line for line in printed(counters, report) if line.startswith("DRAM bytes over"))
    assert "stride_32 2.00x" in line


def test_in_short_each_variant_is_a_row_and_the_best_has_five_figures(report):
    lines = printed(counters, report)
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 1 + 3 + 5
    row = next(line for line in lines if line.startswith("coalesced "))
    assert "110 MiB" in row
    text = " ".join(line.strip() for line in lines)
    assert (
        "coalesced against stride_32: sectors a load 32 → 4, sectors a store 32 → 4, DRAM" in text
    )
    assert not any("stalls" in line for line in lines)


def test_what_the_code_says_stands_beside_what_was_counted(report):
    lines = printed(kernels, report)
    place = lines.index("stride_32")
    assert "stalls: long scoreboard 47% and drain" in " ".join(lines[place : place + 3])
    said = next(line for line in lines[place:] if "in its code" in line)
    assert said.strip() == "in its code: loads use 12% of their sectors, stores use 12%"


def test_a_recorded_lesson_has_its_counters():
    run = read_run_file(CORPUS / "h100" / "coalescing.jsonl.xz")
    report = build_report(fold_all(run.events))
    lines = printed(counters, report)
    assert max(map(len, lines)) <= 80
    said = " ".join(lines)
    assert "coalesced against stride_32: sectors a load 32 → 4, sectors a store 32 → 4" in said
    assert "stride_32 0.987x" in said
    on_screen = printed(lambda run: result(Shown(run, Target.SCREEN, width=80)), report)
    assert on_screen.index(lines[0]) < on_screen.index(_first_of(on_screen, "check  "))


def test_stalls_of_few_samples_have_no_shares():
    run = read_run_file(recorded_path("h100/reduction"))
    said = " ".join(" ".join(printed(kernels, build_report(fold_all(run.events)))).split())
    assert said.count("stalls: few samples (1)") == 3
    assert said.count("stalls: few samples (4)") == 2


def _first_of(lines, beginning):
    return next(line for line in lines if line.startswith(beginning))
