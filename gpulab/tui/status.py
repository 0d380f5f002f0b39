"""What the screen says of itself: what goes on, what a key did, and what a tab has nothing of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from textwrap import wrap

from gpulab.catalog.catalog import ScenarioRow
from gpulab.catalog.needs import default_device, gpu_model, torch_version
from gpulab.catalog.view import replay_hint
from gpulab.core.units import plural
from gpulab.draw.blocks import Text
from gpulab.draw.canvas import wide
from gpulab.options import Options
from gpulab.report.sentences import sentence


def line(text: str) -> Text:
    """Return the first line of the screen with these words."""
    made = Text(no_wrap=True, overflow="ellipsis")
    return made.append(" gpulab", "bold cyan").append(f"  {text}")


def idle(
    settings: Options, rows: Sequence[ScenarioRow], measured: int, width: int, *, is_new: bool
) -> Text:
    """Return the first line while nothing runs: what there is to run on, how many lessons were
    measured, and what one may do, as far as it has room. `is_new`: nothing was read so far.
    """
    device = settings.device or default_device()
    beside = plural(settings.threads, "thread") if device == "cpu" else gpu_model()
    parts = [f"{device}, {beside}" if beside else device]
    count = sum(not (row.missing or row.error) for row in rows)
    lessons = f"{count} of {plural(len(rows), 'lesson')} can run here"
    if measured:
        lessons = f"{measured} of {plural(len(rows), 'lesson')} measured"
    parts.append(lessons)
    text = line("").append(" · ".join(parts))
    # the first hint, which a device with a long name makes room for
    if is_new and text.cell_len + 28 > width:
        text = line("").append(lessons)
    hints = [("your program: ", "gpulab -- python train.py")]
    if is_new:
        about = ("which variant is faster, and why", "")
        hints = [("new here? ", "enter: lesson 1"), about, *hints]
    if version := torch_version():
        hints.append((f"torch {version}", ""))
    for words, key in hints:
        if text.cell_len + len(words) + len(key) + 3 <= width:
            text.append(f"   {words}").append(key, "bold blue")
    return text


def cannot_run(problem: str, row: ScenarioRow) -> str:
    """Say why a key cannot run the scenario."""
    if row.missing and row.recording:
        return f"{problem}; v replays a run on {row.recording}"
    return problem


def found(places: Sequence[str], count: int) -> str:
    """Return what a search came to: where each of those that were found has it."""
    if not places:
        return f"none of {count} has that in its name, lesson or code: esc clears the search"
    where = ", ".join(f"{number} in the {place}" for place, number in Counter(places).items())
    return f"{len(places)} of {count} listed: {where}; esc lists all"


def another_runs(name: str) -> str:
    return f"{name} is running: s s stops it"


def before_a_run(row: ScenarioRow, reading: str = "") -> Text:
    """Describe a scenario that has not run: how to run it, or why it cannot; `reading`: the age of
    its run, whose file is being read.
    """
    if reading:
        return Text(f"reading the run of {reading} ...")
    if row.error:
        return Text(row.error, "red")
    if row.missing:
        text = Text(f"It cannot run here: {sentence(row.missing)}")
    else:
        text = Text("No run so far: r runs it.")
    if hint := replay_hint(row):
        text.append(f"\n\nThere is a recording, {hint}.")
    return text


def in_the_middle(text: Text, size: tuple[int, int]) -> Text:
    """Return a text of one style in the middle of an empty pane."""
    width, height = size
    lines: list[str] = []
    for line in text.split(allow_blank=True):
        lines += wrap(line.plain, min(width, 72)) or [""]
    above = max(0, height - len(lines)) // 2
    centred = [" " * ((width - wide(line)) // 2) + line for line in lines]
    return Text("\n" * above + "\n".join(centred), text.style)


def no_roofline() -> Text:
    return Text("No roofline so far: the ceilings of the device have not been measured.", "dim")
