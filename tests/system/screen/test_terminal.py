"""The program in a real terminal: tmux with nothing but keys, and a pty whose bytes are counted."""

import json
import os
import re
import signal
import sys
import time

import pytest
from faults import scenario
from pseudo_terminal import Pty

from gpulab.core.run_file import read_run_file

GPULAB = f"{sys.executable} -m gpulab --device cpu --time 0.9 --telemetry off fault.py"
COLOUR = re.compile(rb"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|9[0-7]|[34]8;[25])[0-9;]*m")


def terminal_of(lab, **env):
    """The lab on a terminal of 80x24, with a scenario of its own under the cursor."""
    scenario(lab)
    return Pty(GPULAB.split(), env={**lab.env, **env}, cwd=lab.folder)


def restored(output):
    """Whether the last word on screen and cursor is: the usual screen, and a cursor."""
    screen = output.rindex(b"\x1b[?1049l") > output.rindex(b"\x1b[?1049h")
    return screen and output.rindex(b"\x1b[?25h") > output.rindex(b"\x1b[?25l")


def start_run(terminal, until):
    """Run the scenario under the cursor, and wait for a word on the screen."""
    terminal.read(20, until=b"batched_matmul")
    terminal.press(b"r")
    terminal.read(40, until=until)


@pytest.mark.slow
def test_in_lang_c_without_colours_it_is_plain_to_the_last_byte(lab):
    """LANG=C: ASCII only; NO_COLOR: no colour."""
    lab.env = {name: value for name, value in lab.env.items() if not name.startswith("LC_")}
    terminal = terminal_of(lab, LANG="C")
    start_run(terminal, until=b"process")
    running = len(terminal.output)
    for key in (b"4", b"1", b"\x1b"):
        terminal.press(key)
        terminal.read(1)
    if b"ready" not in terminal.output[running:]:
        terminal.read(40, until=b"ready")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert terminal.output.isascii()
    assert not COLOUR.search(terminal.output)
    assert restored(terminal.output)


def test_where_colours_may_be_sent_they_are(lab):
    del lab.env["NO_COLOR"]  # set to nothing, it would still be set
    terminal = terminal_of(lab, LANG="C.UTF-8")
    terminal.read(20, until=b"quit")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert COLOUR.search(terminal.output)


def test_at_rest_not_a_byte_is_sent(lab):
    terminal = terminal_of(lab)
    terminal.read(20, until=b"batched_matmul")
    terminal.read(2)
    assert terminal.read(3) == b""
    terminal.press(b"q")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    "which",
    [
        signal.SIGTERM,
        *(pytest.param(other, marks=pytest.mark.slow) for other in (signal.SIGHUP, signal.SIGINT)),
    ],
)
def test_a_signal_ends_it_with_all_it_started(lab, which):
    terminal = terminal_of(lab)
    start_run(terminal, until=b"start ")
    terminal.read(1)
    if which == signal.SIGINT:
        terminal.press(b"\x03")
    else:
        os.kill(terminal.pid, which)
    assert terminal.end() == (0 if which == signal.SIGINT else 130)
    assert restored(terminal.output)
    assert lab.none_left()


def test_a_terminal_that_goes_away_takes_it_along(lab):
    terminal = terminal_of(lab)
    start_run(terminal, until=b"start ")
    terminal.read(1)
    terminal.hang_up()
    assert terminal.end() == 130
    (file,) = (lab.folder / "state").rglob("runs/*.jsonl")
    assert read_run_file(file).events[-1].outcome == "cancelled"
    assert lab.none_left(within=1)


def test_killed_it_leaves_no_worker(lab):
    terminal = terminal_of(lab)
    start_run(terminal, until=b"start ")
    terminal.read(1)
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.end() == -signal.SIGKILL
    assert lab.none_left()


def test_without_a_terminal_it_says_what_there_is(lab):
    done = lab.call("--device", "cpu")
    assert done.code == 2
    assert "the screen needs a terminal" in done.stderr


def test_a_whole_visit_in_tmux_with_keys_alone(lab, tmux):
    scenario(lab)
    tmux.press("echo before", "Enter")
    tmux.until("before")
    tmux.press(f"{GPULAB}; echo code $?", "Enter")
    screen = tmux.until("ready, on cpu")
    assert (
        screen.index("data movement")
        < screen.index("launch and host overhead")
        < screen.index("compute")
    )
    tmux.until("r run")
    names = [row["name"] for row in json.loads(lab.call("--list", "--json").stdout)]
    tmux.press(*["Down"] * (1 + names.index("batched_matmul")), "Enter")
    tmux.until("one call for many small products")
    tmux.press("r")
    screen = tmux.until("▸MEASURE")
    assert "so far" in screen
    assert "loop" in screen
    assert "bmm" in screen
    tmux.press("s", "s")
    screen = tmux.until("interrupted")
    assert "ready" in screen
    tmux.press("q")
    screen = tmux.until("code 0")
    assert "before" in screen
    assert "batched_matmul" not in screen.partition("code 0")[2]
    assert tmux.flags() == ["1", "0"]


def test_the_editor_opens_the_file_and_what_it_wrote_is_listed(lab):
    """The terminal is the editor's meanwhile, and the lab's again after it."""
    scenario(lab)
    lab.write(
        "editor.py",
        "import sys\nprint('EDITING', flush=True)\nopen(sys.argv[1], 'a').write('1 +\\n')\n",
    )
    editor = f"{sys.executable} {lab.folder / 'editor.py'}"
    terminal = Pty(GPULAB.split(), env={**lab.env, "EDITOR": editor, "VISUAL": ""}, cwd=lab.folder)
    terminal.read(20, until=b"batched_matmul")
    terminal.press(b"e")
    terminal.read(20, until=b"EDITING")
    terminal.read(20, until=b"syntax error")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert restored(terminal.output)


@pytest.mark.slow
def test_after_every_resize_the_terminal_shows_what_a_whole_redraw_shows(lab, tmux):
    """What is sent is only what differs from what the terminal is believed to show."""
    tmux.call("set", "-g", "window-size", "manual")
    tmux.press(GPULAB.replace(" fault.py", ""), "Enter")
    tmux.until("ready, on cpu")  # the last thing that changes by itself
    tmux.until("r run")
    tmux.press("Down", "Enter")
    for size in ((60, 18), (120, 40), (200, 50), (80, 24)):
        tmux.call("resize-window", "-x", str(size[0]), "-y", str(size[1]))
        time.sleep(1.5)
        resized = tmux.text
        tmux.press("C-l")
        time.sleep(1)
        assert tmux.text == resized
        assert "quit" in resized or size[0] < 80
    tmux.press("q")
