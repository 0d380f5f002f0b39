"""What verify.py makes of ncu's counters, and of the lessons that were recorded on an H200."""

import kernel_lines
import lesson_lines
import pytest
from recorded_lessons import recorded_run

COUNTED = """==PROF== Connected to process 7
"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"
"","","byte","byte"
"0","cuda::<unnamed>::spin_kernel(long)","640","0"
"1","void copy<float>(const float *, float *, long long)","1,000","900"
"2","cuda::<unnamed>::spin_kernel(long)","640","0"
"3","cuda::<unnamed>::spin_kernel(long)","640","0"
"4","first","10","0"
"5","second","1","2.5"
"""


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(lesson_lines, "run", recorded_run)


def test_the_kernels_between_two_marks_are_a_step():
    assert kernel_lines.bytes_by_step(COUNTED) == [1900.0, 0.0, 13.5]


def test_the_recorded_lessons_reach_what_is_asked_of_them(recorded):
    rows = list(kernel_lines.kernels(None))
    assert [row for row in rows if row.judgement == "NO"] == []
    shares = {row.title: float(row.measured.split()[0]) for row in rows if "best, of" in row.title}
    assert shares["vectorized_loads: best, of the ceiling of copies"] == pytest.approx(100, abs=3)
    assert shares["reduction: best, of the ceiling of copies"] == pytest.approx(103, abs=4)
    assert shares["shared_memory_tiling: best, of cuBLAS in fp32"] == pytest.approx(81.8, abs=1)


def test_a_lesson_that_falls_short_is_said_to(recorded, monkeypatch):
    monkeypatch.setattr(kernel_lines, "LEAST_OF_CUBLAS", 0.9)
    monkeypatch.setattr(kernel_lines, "KERNELS", ("shared_memory_tiling",))
    (short,) = [row for row in kernel_lines.kernels(None) if row.judgement == "NO"]
    assert short.title == "shared_memory_tiling: best, of cuBLAS in fp32"
