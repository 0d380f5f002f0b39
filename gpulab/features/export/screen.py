"""The result of a run as a terminal shows it: the short one as a picture, the whole one as text."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, Group

from gpulab.core.text import one_line
from gpulab.features.export.record import Record
from gpulab.report.program_result import program_result
from gpulab.report.results import result
from gpulab.report.short_result import ShortResult

_WIDTH = 100
_FONTS = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'
# Rich's own names fonts of a web site; what stands in braces is Rich's.
_SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: FONTS; font-size: {char_height}px; \
line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
""".replace("FONTS", _FONTS)


def screen(record: Record) -> str:
    """The whole file."""
    report = record.report
    console = _console(StringIO(), color=True)
    content = program_result(report) if report.program is not None else ShortResult(report)
    console.print(Group(content, ""))  # the picture ends amid its last line
    title = one_line(f"gpulab {report.scenario}")
    return console.export_svg(title=title, code_format=_SVG)


def text(record: Record) -> str:
    """The whole result as `--verbose` prints it, without colours."""
    file = StringIO()
    _console(file, color=False).print(result(record.report))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _console(file: StringIO, *, color: bool) -> Console:
    return Console(
        record=color,
        width=_WIDTH,
        file=file,
        force_terminal=color,
        force_jupyter=False,
        color_system="truecolor" if color else None,
    )
