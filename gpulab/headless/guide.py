"""`--guide`: a page of the manual, set for a terminal, or as it was written where it goes to a
pipe.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches

from gpulab import guide
from gpulab.core.terminal import shows_unicode
from gpulab.options import Options, UsageError

_COURSE, _CLAIMS = "course", "claims"


def show_guide(names: Sequence[str], options: Options) -> int:
    """Print a page, or the list of pages where none is named. UsageError where there is no such
    page.
    """
    pages, ascii_only = guide.pages(), options.ascii
    if not names:
        width = max(map(len, pages))
        rows = [f"{page:<{width}}  {title}" for page, title in pages.items()]
        _print("\n".join([*rows, "", "gpulab --guide PAGE"]), ascii_only=ascii_only)
        return 0
    name, *more = names
    if name not in pages:
        hint = _hint(name, list(pages), "the pages are")
        raise UsageError(f"--guide {name}: there is no such page; {hint}")
    if more and (name != _COURSE or len(more) > 1):
        raise UsageError(f"--guide {' '.join(names)}: one page, or course and a lesson")
    if more:
        _show_lesson(more[0], ascii_only=ascii_only)
        return 0
    if sys.stdout.isatty() and shows_unicode() and not ascii_only:
        from gpulab.headless.output import open_terminal

        open_terminal(ascii_only=False).out.print(guide.page(name))
    else:
        _print(guide.page_text(name), ascii_only=ascii_only)
    if name == _COURSE:
        _show_course(ascii_only=ascii_only)
    if name == _CLAIMS:
        _show_claims(ascii_only=ascii_only)
    return 0


def _print(text: str, *, ascii_only: bool) -> None:
    if ascii_only or not shows_unicode():
        from gpulab.draw.ascii import to_ascii

        text = to_ascii(text)
    print(text.rstrip("\n"))


def _show_course(*, ascii_only: bool) -> None:
    """Its lessons, with what this machine has of them; nothing where that feature was taken out."""
    from gpulab.features import present

    if not present("course.report"):
        return
    from gpulab.catalog.catalog import catalog
    from gpulab.features.course.report import course
    from gpulab.features.course.view import course_page
    from gpulab.headless.output import open_terminal

    rows = {entry.name: entry.row for entry in catalog()}
    open_terminal(ascii_only=ascii_only).out.print("", *course_page(course(), rows), sep="\n")


def _show_claims(*, ascii_only: bool) -> None:
    """Topic by topic, beside runs; nothing where that feature was taken out."""
    from gpulab.features import present

    if not present("claims.view"):
        return
    from datetime import UTC, datetime

    from gpulab.features.claims.runs import claims
    from gpulab.features.claims.view import topic_claims
    from gpulab.headless.output import open_terminal

    out = open_terminal(ascii_only=ascii_only).out
    now = datetime.now(UTC)
    out.print()
    for topic, members in claims():
        out.print(*topic_claims(topic, members, now, out.width), sep="\n")


def _show_lesson(name: str, *, ascii_only: bool) -> None:
    """Its questions, answered by the newest run of it on this machine."""
    from gpulab.modes import check_installed

    check_installed("--guide course LESSON", "course")
    from gpulab.features.course.report import course, course_lesson
    from gpulab.features.course.view import lesson_page
    from gpulab.headless.output import open_terminal
    from gpulab.session.run import newest_report

    lesson = course_lesson(name)
    if lesson is None:
        names = [other.name for stage in course() for other in stage.lessons]
        hint = _hint(name, names, "they are")
        raise UsageError(f"--guide course {name}: no lesson of the course; {hint}")
    terminal = open_terminal(ascii_only=ascii_only)
    report = newest_report(name)
    terminal.out.print(*lesson_page(lesson, report), sep="\n")
    if report is None:
        terminal.say("", f"the answers come with a run: gpulab --run {name}")
    else:
        terminal.say("", f"answers of the newest run here: {report.run_file}")


def _hint(name: str, names: list[str], these: str) -> str:
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"{these} {', '.join(names)}"
