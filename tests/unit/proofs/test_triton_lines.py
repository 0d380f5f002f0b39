"""What verify.py makes of the Triton lessons that were recorded on an H200."""

import lesson_lines
import pytest
import triton_lines
from recorded_lessons import recorded_run


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setattr(lesson_lines, "run", recorded_run)


def test_the_recorded_lessons_reach_what_is_asked_of_them(recorded):
    rows = list(triton_lines.triton(None))
    assert [row for row in rows if row.judgement == "NO"] == []
    shares = {row.title: float(row.measured.split()[0]) for row in rows if ", of " in row.title}
    assert shares == {
        "vector_add: Triton, of the ceiling of copies": pytest.approx(102.5, abs=2),
        "fused_softmax: Triton, of the ceiling of copies": pytest.approx(97, abs=2),
        "triton_matmul: best, of cuBLAS in bf16": pytest.approx(98.6, abs=1),
        "persistent_matmul: best, of cuBLAS in bf16": pytest.approx(101.5, abs=1.5),
        "attention: Triton, of the best backend of torch": pytest.approx(79.4, abs=1),
    }


def test_a_lesson_that_falls_short_is_said_to(recorded, monkeypatch):
    monkeypatch.setattr(triton_lines, "OF_SDPA", 0.9)
    monkeypatch.setattr(triton_lines, "LESSONS", ("attention",))
    (short,) = [row for row in triton_lines.triton(None) if row.judgement == "NO"]
    assert short.title == "attention: Triton, of the best backend of torch"
