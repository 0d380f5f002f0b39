"""Whole visits in tmux at 80x24, by keys alone: a newcomer, an engineer with a file of their own, a
teacher.
"""

import sys

import pytest

OWN = '''"""Own step: what an engineer tunes."""
from time import sleep

import torch

from gpulab import Scenario, Work

scenario = Scenario("mine")


def work(lab, seconds):
    data = torch.rand(64)
    return Work(lambda: (sleep(seconds), data * 2)[1], inputs=data)


@scenario.variant
def before(lab):
    return work(lab, 0.002)


@scenario.variant
def after(lab):
    raise ValueError("not yet")
'''
EDITOR = """import sys
path = sys.argv[-1]
text = open(path).read()
open(path, "w").write(text.replace('raise ValueError("not yet")', "return work(lab, 0.001)"))
"""
LOCALES = [
    pytest.param("C", id="ascii"),
    pytest.param("C.UTF-8", id="utf-8", marks=pytest.mark.slow),
]


@pytest.fixture(params=LOCALES)
def visit(request, lab, tmux):
    """`visit(arguments)` opens the lab; once it has ended, what it wrote was plain where the locale
    is.
    """
    written = lab.folder / "written"
    tmux.call("pipe-pane", "-o", f"cat > {written}")
    editor = lab.write("editor.py", EDITOR)

    def go(*arguments):
        variables = (
            f"env -u NO_COLOR LC_ALL={request.param} VISUAL= EDITOR='{sys.executable} {editor}'"
        )
        command = (
            f"{sys.executable} -m gpulab --device cpu --time 0.9 --telemetry off --profile off"
        )
        tmux.press(f"{variables} {command} {' '.join(map(str, arguments))}; echo code $?", "Enter")
        tmux.until("run here")
        tmux.until("r run")
        return tmux

    yield go
    tmux.press("q")
    tmux.until("code 0")
    assert tmux.flags() == ["1", "0"]
    if request.param == "C":
        assert written.read_bytes().isascii()


@pytest.mark.slow
def test_a_newcomer_searches_reads_predicts_runs_and_sees_the_answer(visit):
    tmux = visit()
    tmux.press("/")
    tmux.press("-l", "torch.bmm")
    tmux.until("1 in the")
    tmux.press("Enter", "Enter")
    tmux.until("one call for many small products")
    tmux.press("2")
    tmux.until("the baseline")
    tmux.press("g")
    tmux.until("How many times as fast is bmm?")
    tmux.press("4", "Down", "l", "Enter")
    tmux.until("hidden until the verdict is final")
    tmux.until("time of a step")
    tmux.until("run here")
    tmux.press("NPage")
    tmux.until("predicted 4.00x; measured")
    tmux.press("F1")
    tmux.until("words on this screen")
    tmux.press("Escape")
    tmux.until("run here")


@pytest.mark.slow
def test_an_engineer_runs_fails_edits_runs_again_compares_and_copies(visit, lab):
    tmux = visit(lab.write("own.py", OWN))
    tmux.press("r")
    tmux.until("after failed (build, line 23): ValueError: not yet")
    tmux.until("run here")
    tmux.press("2")
    tmux.until("ValueError: not yet")
    tmux.press("e")
    tmux.until("return work(lab, 0.001)")
    tmux.press("r")
    tmux.until("after   1.")
    tmux.until("run here")
    tmux.press("y")
    tmux.until("copied, and in")
    tmux.press("h")
    tmux.until("2 runs")
    tmux.press("Space", "Down", "Space", "c")
    tmux.until("A and B")
    screen = tmux.until("the lines that differ")
    assert "+     return work(lab, 0.001)" in screen
    tmux.press("Escape")
    tmux.until("2 runs")
    tmux.press("Escape")
    tmux.until("r run")


@pytest.mark.slow
def test_a_teacher_collects_predictions_zooms_and_freezes(visit):
    tmux = visit()
    tmux.press("/")
    tmux.press("-l", "torch.bmm")
    tmux.press("Enter", "g")
    tmux.until("How many times as fast is bmm?")
    tmux.press("-l", "2 4 4 8 30")
    tmux.until("5 predictions, median 4.00x, 2.00x to 30.0x")
    tmux.press("Enter")
    tmux.until("MEASURE")
    tmux.press("Tab", "z")
    tmux.until("time of a step")
    tmux.press("Right")
    tmux.until("confidence: bmm over loop")
    tmux.press("Space")
    tmux.until("paused (space resumes)")
    tmux.press("Space", "z")
    tmux.until("run here")
    tmux.press("Home", "NPage")
    tmux.until("median prediction 4.00x; measured")
