"""The program in a real terminal: tmux with nothing but keys, and a pty whose bytes are counted."""

import os
import re
import signal
import sys
import termios
import time

import pytest
from conftest import wait_for
from faults import scenario
from pseudo_terminal import Pty

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
    terminal.read(20, until=b"cold_start")
    terminal.press(b"r")
    terminal.read(40, until=until)


@pytest.mark.slow
def test_a_terminal_without_a_size_is_drawn_once_and_can_be_left(lab):
    """As `docker exec -t` gives one: two sizes were laid out in turn, and no key was read."""
    scenario(lab)
    terminal = Pty(GPULAB.split(), size=(0, 0), env=lab.env, cwd=lab.folder)
    terminal.read(30, until=b"cold_start")
    terminal.read(1.5)
    assert terminal.read(0.5) == b""
    terminal.press(b"q")
    assert terminal.end() == 0


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
    if b"lessons measured" not in terminal.output[running:]:
        terminal.read(40, until=b"lessons measured")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert terminal.output.isascii()
    assert not COLOUR.search(terminal.output)
    assert restored(terminal.output)


def test_at_rest_not_a_byte_is_sent_until_the_editor_has_written(lab):
    """Where colours may be sent they are. The terminal is the editor's meanwhile, and the lab's
    again after it. The worker that is kept ready ends with the lab.
    """
    del lab.env["NO_COLOR"]  # set to nothing, it would still be set
    text = "import sys\nprint('EDITING', flush=True)\nopen(sys.argv[1], 'a').write('1 +\\n')\n"
    editor = f"{sys.executable} {lab.write('editor.py', text)}"
    terminal = terminal_of(lab, LANG="C.UTF-8", EDITOR=editor, VISUAL="")
    terminal.read(20, until=b"cold_start")
    wait_for(lambda: any(b"--ready" in command for command in lab.processes().values()))
    terminal.read(0.5)
    assert COLOUR.search(terminal.output)
    assert terminal.read(1) == b""
    os.kill(terminal.pid, signal.SIGCONT)  # without having been stopped
    terminal.press(b"e")
    terminal.read(20, until=b"EDITING")
    terminal.read(20, until=b"syntax error")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert restored(terminal.output)
    assert terminal.settings[3] & termios.ECHO
    assert lab.none_left()


@pytest.mark.parametrize(
    ("editor", "problem"),
    [
        pytest.param("/nope/ed", b": not found", marks=pytest.mark.slow),
        pytest.param("./fault.py", b": Exec format error", marks=pytest.mark.slow),
        ("sh -c 'stty raw -echo; kill -STOP $$; exit 3'", b": exit code 3"),
    ],
)
def test_whatever_becomes_of_the_editor_the_lab_goes_on(lab, editor, problem):
    """And the settings of the terminal are what they were before."""
    terminal = terminal_of(lab, EDITOR=editor, VISUAL="")
    (lab.folder / "fault.py").chmod(0o755)
    before = termios.tcgetattr(terminal.fd)
    terminal.read(20, until=b"cold_start")
    terminal.press(b"e")
    terminal.read(20, until=problem)
    terminal.press(b"q")
    assert terminal.end() == 0
    assert restored(terminal.output)
    assert terminal.settings == before


def test_an_editor_that_stops_gives_the_terminal_to_the_shell(lab, tmux):
    """Ctrl+Z of an editor stops the whole job, and `fg` goes on with it."""
    scenario(lab)
    tmux.press(f"EDITOR=\"sh -c 'kill -TSTP 0; exit 5'\" VISUAL= {GPULAB}", "Enter")
    tmux.until("r run")
    tmux.press("e")
    tmux.until("Stopped")
    tmux.press("clear; fg; echo ended $?", "Enter")
    tmux.until("exit code 5")
    tmux.press("q")
    tmux.until("ended 0")


@pytest.mark.slow
def test_ctrl_c_ends_it_with_all_it_started(lab):
    terminal = terminal_of(lab)
    start_run(terminal, until=b"start ")
    terminal.read(1)
    terminal.press(b"\x03")
    assert terminal.end() == 0
    assert restored(terminal.output)
    assert lab.none_left()


def test_without_a_terminal_it_says_what_there_is(lab):
    done = lab.call("--device", "cpu")
    assert done.code == 2
    assert "the screen needs a terminal" in done.stderr


def settled(tmux):
    """What is shown once nothing has changed for a second and a half."""
    before, text = None, tmux.text
    while text != before:
        time.sleep(1.5)
        before, text = text, tmux.text
    return text


@pytest.mark.slow
def test_after_every_resize_the_terminal_shows_what_a_whole_redraw_shows(lab, tmux):
    """What is sent is only what differs from what the terminal is believed to show."""
    tmux.call("set", "-g", "window-size", "manual")
    tmux.press(GPULAB.replace(" fault.py", ""), "Enter")
    tmux.until("run here")  # the last thing that changes by itself
    tmux.until("r run")
    tmux.press("Down", "Enter")
    tmux.until("1 Lesson")
    for size in ((60, 18), (120, 40), (200, 50), (80, 24)):
        tmux.call("resize-window", "-x", str(size[0]), "-y", str(size[1]))
        resized = settled(tmux)
        tmux.press("C-l")
        assert settled(tmux) == resized
        assert "quit" in resized or size[0] < 80
    tmux.press("q")
