"""The consoles of the command line: whatever they are given, nothing of it drives the terminal,
also while redrawn.
"""

import io
import re
import unicodedata

import pytest
from pseudo_terminal import Pty
from rich.console import Group
from rich.live import Live
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text
from scripted import OVER_SCRIPT, SCENARIO

from gpulab.headless.output import PlainConsole

HOSTILE = "x\x1b[31m\x9b1m\u202e\u2066\u200b\u2028\x00\x7f[bold]y[/bold] :smile: z"
CONTROLS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def visible(text):
    return all(
        mark == "\n" or mark.isprintable() or unicodedata.category(mark) == "Zs" for mark in text
    )


def table():
    rows = Table(HOSTILE, title=HOSTILE)
    rows.add_row(HOSTILE)
    return rows


@pytest.mark.parametrize(
    "view",
    [HOSTILE, Text(HOSTILE), Group(HOSTILE, Text(HOSTILE)), table(), Markdown(HOSTILE)],
    ids=lambda view: type(view),
)
def test_nothing_that_is_printed_drives_the_terminal(view):
    console = PlainConsole(io.StringIO())
    console.print(view, soft_wrap=True)
    with Live(view, console=console, auto_refresh=False) as live:
        live.refresh()
    shown = console.file.getvalue()
    assert visible(shown)
    assert ":smile:" in shown


def test_progress_that_is_redrawn_is_as_safe_as_the_result(lab):
    claim = r"\x1b[31mclaimed\u202e\u2028\nforged  9.99x  faster"
    lab.write("mine.py", SCENARIO.replace('claim="2x"', f'claim="{claim}"'))
    line = "--run mine.py --profile off --telemetry off --output run.jsonl"
    terminal = Pty([*OVER_SCRIPT, *line.split()], env=lab.env, cwd=lab.folder)
    assert terminal.end(60) == 0
    assert terminal.output.count(b"claimed") >= 2  # while it ran, and in the result
    assert b"\x1b[31m" not in terminal.output
    lines = CONTROLS.sub(b"", terminal.output).decode().replace("\r", "\n").split("\n")
    assert all(map(visible, lines))
    assert not [line for line in lines if line.lstrip().startswith("forged")]
