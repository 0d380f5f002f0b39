"""The version with the commit: of the checkout that runs, else of that which it was built of."""

from functools import cache
from pathlib import Path

from gpulab.version import __version__

_PACKAGE = Path(__file__).parent
_DIGITS = 7


@cache
def version() -> str:
    """As 0.1.0+g1234567. To start git would take longer than all of `--version` does."""
    commit = _text(_PACKAGE / "commit.txt") or commit_of(_PACKAGE.parent)
    return f"{__version__}+g{commit[:_DIGITS]}" if commit else f"{__version__}+unknown"


def commit_of(checkout: Path) -> str:
    """Return what is checked out there; empty where there is no git."""
    folder = checkout / ".git"
    if pointer := _text(folder):  # of a further worktree
        folder = checkout / pointer.removeprefix("gitdir: ")
    head = _text(folder / "HEAD")
    if not head.startswith("ref: "):
        return head
    branch = head.removeprefix("ref: ")
    common = folder / _text(folder / "commondir")
    if commit := _text(common / branch):
        return commit
    packed = _text(common / "packed-refs").splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {branch}")), "")


def _text(path: Path) -> str:
    """Return what a file holds; empty where it cannot be read."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
