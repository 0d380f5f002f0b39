"""What was counted, in the report of a run: beside declared work, and beside what the code says."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from gpulab.catalog.recordings import RECORDINGS
from gpulab.core.run_file import read_run_file
from gpulab.features.counters.events import KernelsCounted
from gpulab.features.counters.metrics import together
from gpulab.features.counters.reading import read
from gpulab.features.counters.view import counters
from gpulab.report.build import build_report, fold_all

RAW = Path(__file__).parent / "exports" / "lessons.raw.csv"
OF_VARIANTS = {"stride_32": ["strided"], "coalesced": ["coalesced"], "stride_2": ["padded"] * 4}
"""The kernel of an export that stands for each of these; the lesson has one kernel."""


@pytest.fixture(scope="module")
def report():
    """Of a recorded run of an H200, as if it had been counted."""
    *events, end = read_run_file(RECORDINGS / "h200" / "coalescing.jsonl.xz").events
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


@pytest.fixture(scope="module")
def lines(report):
    console = Console(width=80)
    with console.capture() as captured:
        console.print(counters(report))
    return captured.get().splitlines()


def test_counted_bytes_stand_beside_the_declared_ones(report, lines):
    declared = report.variant("stride_32").bytes
    counted = 1_608_038_000 + 536_248_576  # of DRAM, read and written
    assert report.variant("stride_32").counters.dram_of_declared == counted / declared
    assert report.variant("stride_8").counters is None
    (line,) = (line for line in lines if line.startswith("DRAM bytes counted"))
    assert "stride_32 2.00x" in line


def test_each_variant_is_a_row_of_80_columns_held_against_the_baseline(lines):
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.startswith("coalesced "))
    assert row.split()[-2:] == ["110", "MiB"]
    text = " ".join(line.strip() for line in lines)
    assert "coalesced against stride_32: DRAM bytes 0.054x, time 0.062x" in text
    assert "sectors a load 0.12x" in text


def test_what_the_code_says_stands_beside_what_was_counted(lines):
    place = next(place for place, line in enumerate(lines) if line.startswith("stride_32: scale"))
    assert "stalls: long scoreboard 47% and drain" in " ".join(lines[place : place + 2])
    said = next(line for line in lines[place:] if "in its code" in line)
    assert said.strip() == "in its code: loads use 12% of their sectors, stores use 12%"


def test_of_many_kernels_the_longest_are_shown(lines):
    assert "1 more kernel: 60.7 µs" in lines
