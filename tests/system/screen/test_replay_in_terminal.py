"""A live run in one terminal and its replay in the next: the same cells."""

import re
import sys
import time

import pytest
from faults import scenario

GPULAB = f"env -u NO_COLOR LC_ALL=C.UTF-8 {sys.executable} -m gpulab"
_PIECE = re.compile(r"(?:\x1b\[([0-9;]*)m)?([^\x1b]*)")
LABELS = slice(1, -1)
"""All rows but the first and the last, which have position and keys of the replay."""


def cells(tmux):
    """Every row, once nothing of it changes any more: its cells with their styles."""
    before, now = None, ""
    while now != before:
        time.sleep(0.5)
        before, now = now, tmux.call("capture-pane", "-e", "-p")
    rows = []
    style = frozenset()
    for row in now.splitlines():
        drawn = []
        for codes, text in _PIECE.findall(row):
            style = styled(style, codes)
            drawn += [(character, seen(style, character)) for character in text]
        rows.append(drawn + [(" ", frozenset())] * (80 - len(drawn)))
    return rows


def styled(style, codes):
    """A style after codes such as 0;1;34."""
    for code in filter(None, codes.split(";")):
        kind = "fore" if code[0] in "39" else "back" if code[0] in "41" and len(code) > 1 else code
        kept = {each for each in style if each[0] != kind}
        if code == "0":
            style = frozenset()
        elif code in ("39", "49"):
            style = frozenset(kept)
        else:
            style = frozenset({*kept, (kind, code)})
    return style


def seen(style, character):
    """What of it can be seen: of a blank neither its colour nor that it is bold or dim."""
    if character != " ":
        return style
    return frozenset(each for each in style if each[0] in ("back", "7", "4"))


@pytest.mark.slow
def test_the_last_screen_of_a_run_and_that_of_its_replay_are_equal_cell_by_cell(lab, tmux):
    scenario(lab)
    options = "--device cpu --time 0.9 --telemetry off --profile off"
    tmux.press(f"{GPULAB} {options} fault.py", "Enter")
    tmux.until("run here")
    tmux.press("r")
    tmux.until("so far")
    tmux.until("run here")
    live = cells(tmux)
    tmux.press("q")
    tmux.until("$ ")
    tmux.press(f"clear; {GPULAB} --replay fault", "Enter")
    tmux.until("replay CPU, torch")
    tmux.press(":100%", "Enter")
    tmux.until("ended 1x")
    replay = cells(tmux)
    assert len(live) == len(replay) == 24
    assert replay[LABELS] == live[LABELS]
    moments = []
    for keys in (":40%", ":100%", ":40%"):
        tmux.press(keys, "Enter")
        moments.append(cells(tmux)[LABELS])
    assert moments[0] == moments[2] != moments[1] == live[LABELS]
    tmux.press("q")
