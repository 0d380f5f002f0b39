"""Peak memory over a parameter: one curve stays flat or grows in step, another grows with its
square.
"""

from conftest import printed
from run_reports import run, variant

from gpulab.core.statuses import Shows
from gpulab.features.memory.events import MemoryUsed
from gpulab.features.memory.view import memory_over
from gpulab.scenario import MiB

PEAKS = {256: (4 * MiB, 1 * MiB), 512: (16 * MiB, 2 * MiB), 1024: (64 * MiB, 4 * MiB)}


def reports(shows=Shows.MEMORY, **params):
    return [
        run(
            variant("naive", memory=MemoryUsed(variant="", held=0, peak=naive)),
            variant("flash", memory=MemoryUsed(variant="", held=0, peak=flash)),
            variant("skipped"),
            shows=shows,
            params={"length": length, "name": str(length)},
        )
        for length, (naive, flash) in PEAKS.items()
    ]


def test_each_variant_is_a_letter_at_each_value_and_its_growth_is_said():
    lines = [line.rstrip() for line in printed(memory_over("length", reports())).splitlines()]
    assert lines[:4] == [
        "peak memory, length   A naive   B flash",
        "                256  4.00 MiB  1.00 MiB",
        "                512  16.0 MiB  2.00 MiB",
        "               1024  64.0 MiB  4.00 MiB",
    ]
    drawn = "\n".join(lines[4:-1]).replace("iB", "")
    assert (drawn.count("A"), drawn.count("B")) == (3, 3)
    assert lines[-1] == "from length=512 to 1024 it grows: naive 4.00x, flash 2.00x"


def test_it_is_drawn_of_lessons_about_memory_over_numbers_alone():
    assert memory_over("length", reports(shows=Shows.SPEEDUP)) is None
    assert memory_over("name", reports()) is None
    assert memory_over("length", reports()[:1]) is None
