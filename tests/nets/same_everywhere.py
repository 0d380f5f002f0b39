"""What the nets hold still: the environment of a command, the machine that it sees, and what of its
text is of one moment or one place.
"""

import os
import re
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
CHECKOUT = TESTS.parent
_HOMES = ("STATE", "CACHE", "CONFIG", "DATA")
_MASKS = (
    (r"\+(g[0-9a-f]{7,12}|unknown)", "+COMMIT"),
    (r"\b20\d{6}T\d{6}\.\d{3}-([\w-]+)-\d+\.jsonl", r"STAMP-\1-PID.jsonl"),
)
_OF_TODAY = (
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?(\+00:00|Z)?)?", "MOMENT"),
    (r"\b20\d\d-\d\d-\d\d\b", "DAY"),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "MOMENT"),
    (r"\b([Pp]ython|torch) \d+\.\d+(\.\d+[\w+.]*)?", r"\1 VERSION"),
    (r"gpulab-\w+-[a-z0-9_]{8}\b", "TEMPORARY"),
    (r"\bruns in \d+ s,", "runs in SOME s,"),
)
_PROGRESS = re.compile(
    r"^\S+ · (build|start|import|warm|end)\w* .*\d s\b|^.* \(\d+ of \d+\), about "
)
"""Lines on stderr, which come by the clock."""


def environment(folder):
    """That of a command whose homes are in a folder."""
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in _HOMES}
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return {
        **kept,
        **homes,
        "HOME": str(folder),
        "COLUMNS": "80",
        "LINES": "24",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TERM": "xterm-256color",
        "TZ": "UTC",
        "GPULAB_HOST": "HOST",
        "PYTHONHASHSEED": "0",
        "MPLCONFIGDIR": str(folder / "matplotlib"),
    }


def one_machine():
    """From now on this process sees a machine without a GPU that has a compiler and no JAX."""
    from gpulab.catalog import findings, needs

    for need in ("cuda", "cupy", "triton"):
        needs._MISSING[need] = findings.no_gpu
    needs._MISSING["jax"] = lambda: findings.not_installed(package="JAX", install="jax")
    needs._MISSING["compiler"] = lambda: None


def masked(text, folder, *, of_today=False):
    """A text without what is of this moment, this machine and this checkout. `of_today`: of what ran
    just now, whose days are no recorded ones.
    """
    places = {folder.resolve(): "FOLDER", folder: "FOLDER", CHECKOUT: "CHECKOUT"}
    places |= {Path(sys.prefix): "PREFIX"}
    for place, word in sorted(places.items(), key=lambda pair: -len(str(pair[0]))):
        text = text.replace(str(place), word)
    text = _without_cut_paths(text, str(folder))
    for pattern, word in (*_MASKS, *(_OF_TODAY if of_today else ())):
        text = re.sub(pattern, word, text)
    lines = [line.rstrip() for line in text.splitlines()]
    if of_today:
        lines = [line for line in lines if not _PROGRESS.match(line)]
    return "\n".join(lines) + "\n"


def _without_cut_paths(text, path):
    """Also where only its beginning had room, in a narrow column."""
    for length in range(len(path), len("/tmp"), -1):
        text = text.replace(f"{path[:length]}…", "FOLDER…")
    return text
