"""What recorded runs print: replayed without the screen in every form, compared, and as a history."""

import io
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser

from recorded import run_file

from gpulab.cli import main

RUNS = (
    "calibration",
    "cancelled",
    "checks",
    "crash-late",
    "findings/loaders",
    "findings/on_gpu",
    "fixes",
    "function",
    "grows",
    "h100/ddp_overlap",
    "h100/small_kernels",
    "older/coalescing",
    "h200/cold_start",
    "h200/pinned_memory",
    "h200/precision",
    "h200/timing_without_sync",
    "lesson-batched_matmul",
    "phases",
    "quick",
    "standin-throttled",
)
PAIRS = (("precision-h100-1", "precision-h200"), ("quick", "lesson-batched_matmul"))
NAMES = (*RUNS, *(f"compare {' '.join(pair)}" for pair in PAIRS), "history")
_FORMS = (
    (),
    ("--verbose",),
    ("--ascii",),
    ("--raw",),
    ("--markdown",),
    ("--checklist",),
    ("--top", "12"),
    ("--from-start",),
    ("--export", "page.md"),
    ("--export", "page.html"),
)
_COMPARED = (
    (),
    ("--verbose",),
    ("--markdown",),
    ("--export", "page.md"),
    ("--export", "page.html"),
)


def text_of(name, folder):
    if name == "history":
        return _history(folder)
    if name.startswith("compare "):
        files = [run_file(each, folder) for each in name.split()[1:]]
        return "".join(_said("--compare", *files, *form) for form in _COMPARED)
    path = run_file(name, folder)
    return "".join(_said("--replay", path, *form) for form in _FORMS)


def _history(folder):
    """Of two runs of one scenario, and one of another, made on the first days of a year."""
    from datetime import UTC, datetime, timedelta

    from msgspec.structs import replace

    from gpulab.core.run_file import read_run_file
    from gpulab.report.build import build_report, fold_all
    from gpulab.report.past import past_run
    from gpulab.session.store import Store

    with Store() as store:
        for day, name in enumerate(("precision-h100-1", "precision-h200", "healthy"), 1):
            path = run_file(name, folder)
            state = fold_all(read_run_file(path).events)
            at = (datetime.now(UTC) - timedelta(days=10 - day)).isoformat()
            store.add_run(replace(past_run(state, build_report(state, str(path))), at=at))
    words = ((), ("precision",), ("precision", "--verbose"))
    return "".join(_said("--history", *form) for form in words)


def _said(*words):
    """A command with its exit code, and what it wrote: to stdout, stderr and its page."""
    words = [str(word) for word in words]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return f"$ gpulab {' '.join(words)}\nexit code {code}\n{texts[0]}--- stderr\n{texts[1]}{_page(words)}\n"


def _page(words):
    from pathlib import Path

    path = Path(words[-1])
    if not path.is_file() or "--export" not in words:
        return ""
    text = path.read_text()
    path.unlink()
    if path.suffix == ".html":
        reader = _Words()
        reader.feed(text)
        text = "\n".join(reader.lines)
    return f"--- {path}\n{text}"


class _Words(HTMLParser):
    """The text of a page, a line an element that has some."""

    def __init__(self):
        super().__init__()
        self.lines, self._tags = [], []

    def handle_starttag(self, tag, attrs):
        self._tags.append(tag)

    def handle_endtag(self, tag):
        while tag in self._tags and self._tags.pop() != tag:
            pass

    def handle_data(self, data):
        if data.strip() and not {"style", "script"} & set(self._tags[-1:]):
            self.lines += [line.rstrip() for line in data.splitlines() if line.strip()]
