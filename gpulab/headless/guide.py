"""`--guide`: a page of the manual, set for a terminal, or as it was written where it goes to a pipe."""

from __future__ import annotations

from difflib import get_close_matches

from gpulab.headless.options import Options
from gpulab.headless.terminal import open_terminal
from gpulab.session.settings import UsageError
from gpulab.views import guide


def show_guide(name: str, options: Options) -> int:
    """Print a page, or the list of pages where none is named. UsageError where there is no such page."""
    terminal = open_terminal(ascii_only=options.ascii)
    pages = guide.pages()
    if not name:
        width = max(map(len, pages))
        terminal.say(*(f"{page:<{width}}  {title}" for page, title in pages.items()), "", "gpulab --guide PAGE")
        return 0
    if name not in pages:
        close = get_close_matches(name, pages, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the pages are {', '.join(pages)}"
        raise UsageError(f"--guide {name}: there is no such page; {hint}")
    if terminal.out.is_terminal and not terminal.glyphs.ascii:
        terminal.out.print(guide.page(name))
    else:
        terminal.say(*guide.page_text(name).splitlines())
    return 0
