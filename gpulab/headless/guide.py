"""`--guide`: a page of the manual, set for a terminal, or as it was written where it goes to a
pipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from gpulab.catalog.catalog import catalog
from gpulab.features import present
from gpulab.features.guide import view as guide
from gpulab.headless.options import Options
from gpulab.headless.output import Terminal, open_terminal
from gpulab.modes import check_installed
from gpulab.session.run import newest_report
from gpulab.session.settings import UsageError
from gpulab.show.parts import part

_COURSE = "course"


def show_guide(names: Sequence[str], options: Options) -> int:
    """Print a page, or the list of pages where none is named. UsageError where there is no such
    page.
    """
    terminal = open_terminal(ascii_only=options.ascii)
    pages = guide.pages()
    if not names:
        width = max(map(len, pages))
        terminal.say(
            *(f"{page:<{width}}  {title}" for page, title in pages.items()),
            "",
            "gpulab --guide PAGE",
        )
        return 0
    name, *more = names
    if name not in pages:
        raise UsageError(
            f"--guide {name}: there is no such page; {_hint(name, list(pages), 'the pages are')}"
        )
    if more and (name != _COURSE or len(more) > 1):
        raise UsageError(f"--guide {' '.join(names)}: one page, or course and a lesson")
    if more:
        return _show_lesson(more[0], terminal)
    if terminal.out.is_terminal and not terminal.ascii_only:
        terminal.out.print(guide.page(name))
    else:
        terminal.say(*guide.page_text(name).splitlines())
    report = present("course.report")
    if name == _COURSE and report:
        rows = {entry.name: entry.row for entry in catalog()}
        terminal.out.print("", *part("course.view:course_page", report.course(), rows), sep="\n")
    return 0


def _show_lesson(name: str, terminal: Terminal) -> int:
    """Its questions, answered by the newest run of it on this machine."""
    check_installed("--guide course LESSON", "course")
    from gpulab.features.course.report import course, course_lesson
    from gpulab.features.course.view import lesson_page

    lesson = course_lesson(name)
    if lesson is None:
        names = [other.name for stage in course() for other in stage.lessons]
        raise UsageError(
            f"--guide course {name}: no lesson of the course; {_hint(name, names, 'they are')}"
        )
    report = newest_report(name)
    terminal.out.print(*lesson_page(lesson, report), sep="\n")
    if report is None:
        terminal.say("", f"the answers come with a run: gpulab --run {name}")
    else:
        terminal.say("", f"answers of the newest run here: {report.run_file}")
    return 0


def _hint(name: str, names: list[str], these: str) -> str:
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"{these} {', '.join(names)}"
