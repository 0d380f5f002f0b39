"""Which scenarios there are: files read as text, in the order in which they are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path

import gpulab
from gpulab.model.plain import plain
from gpulab.model.scenario import Scenario
from gpulab.run.needs import first_missing
from gpulab.run.reader import EMPTY, Source, UnreadableError, read_source

TOPICS = (
    "data movement",
    "launch and host overhead",
    "compute",
    "CUDA C++ kernels",
    "Triton, compilers, attention",
    "distributed",
)
"""The order of the lessons' own topics; others follow."""


class ScenarioNotFoundError(LookupError):
    """Nothing to run goes by that name; the message says what there is."""


@dataclass(frozen=True)
class Entry:
    """One file of the catalog: a scenario that can be listed, or the error that keeps it from running."""

    name: str
    path: Path
    sha256: str = ""
    source: Source = EMPTY
    error: UnreadableError | None = None

    @property
    def scenario(self) -> Scenario | None:
        return self.source.scenario

    @property
    def title(self) -> str:
        """The first line of the lesson."""
        return plain(self.source.lesson.partition("\n")[0]) or self.name

    @property
    def missing(self) -> str | None:
        """The need that this machine does not meet, with the reason."""
        return first_missing(self.scenario.needs) if self.scenario else None


def read_file(path: Path) -> Entry:
    """Read one file. An unreadable one is an entry too, with its error."""
    path = path.resolve()
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        return Entry(path.stem, path, error=UnreadableError(1, f"cannot be read: {error}", "is this a Python file?"))
    digest = sha256(data).hexdigest()
    try:
        return Entry(path.stem, path, digest, read_source(text))
    except UnreadableError as error:
        return Entry(path.stem, path, digest, error=error)


def folders() -> list[Path]:
    """Where scenarios are looked for: here, `$GPULAB_SCENARIOS`, the ones that ship."""
    named = [Path(one).expanduser() for one in os.environ.get("GPULAB_SCENARIOS", "").split(os.pathsep) if one]
    # The package first: an editable install keeps its scenarios beside the package instead.
    package = Path(gpulab.__file__).parent
    shipped = package / "scenarios"
    return [Path("scenarios"), *named, shipped if shipped.is_dir() else package.parent / "scenarios"]


def catalog(paths: Iterable[Path] = ()) -> list[Entry]:
    """All scenarios, by topic; of several of one name the first that is found. `paths` come before the folders."""
    found: dict[str, Entry] = {}
    for place in [*paths, *folders()]:
        for file in sorted(place.glob("*.py")) if place.is_dir() else [place] if place.is_file() else []:
            entry = read_file(file)
            if entry.error or entry.scenario:
                found.setdefault(entry.name, entry)
    return sorted(found.values(), key=_order)


def find(name: str) -> Entry:
    """A scenario by its name or its file. A broken file is an entry with its error."""
    if name.endswith(".py") or os.sep in name:
        path = Path(name)
        if not path.is_file():
            raise ScenarioNotFoundError(f"there is no file {name}")
        entry = read_file(path)
        if not entry.error and not entry.scenario:
            raise ScenarioNotFoundError(
                f"{name} has no Scenario; to time a function of it, run {name}:FUNCTION, "
                f"with one of {', '.join(entry.source.functions) or '(it has none)'}"
            )
        return entry
    entries = {entry.name: entry for entry in catalog()}
    if name in entries:
        return entries[name]
    close = get_close_matches(name, entries, n=3)
    raise ScenarioNotFoundError(
        f"there is no scenario {name!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
    )


def _order(entry: Entry) -> tuple[int, str, str]:
    topic = entry.scenario.topic if entry.scenario else ""
    return TOPICS.index(topic) if topic in TOPICS else len(TOPICS), topic, entry.name
