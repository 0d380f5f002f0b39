"""Scenarios by what one types: their names and titles, their lessons, and their code."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec.structs import replace as replace_fields

from gpulab.catalog.findings import hides_another, takes_arguments
from gpulab.catalog.kept import KeptTexts
from gpulab.catalog.needs import first_missing
from gpulab.catalog.reader import EMPTY, PlainFunction, ScenarioText, read_text
from gpulab.catalog.recordings import recorded_on, recording
from gpulab.catalog.source import (
    UnreadableError,
    expanded,
    is_folder,
    is_there,
    python_files,
    real_path,
    shown_path,
    source_of,
)
from gpulab.core.files import read_regular
from gpulab.core.findings import Finding
from gpulab.core.limits import SOURCE_BYTES, TEXT_LENGTH
from gpulab.core.readable import readable
from gpulab.core.statuses import Shows
from gpulab.core.text import one_line, plain
from gpulab.features import present
from gpulab.scenario import FIRST, Param, Scenario

TOPICS = (
    "data movement",
    "launch and host overhead",
    "compute",
    "CUDA C++ kernels",
    "Triton, compilers, attention",
    "distributed",
)
"""The order of a list: these topics, in each the lessons in the order of the course, then others by
their names.
"""
_NOTHING_TO_RUN = UnreadableError(
    1,
    "no Scenario and no public function",
    "define a Scenario (gpulab --new FILE), or a function to time",
)


def claim_on_cpu(claim: str, params: Mapping[str, object]) -> str:
    """Return a claim, and that it is not of the parameters that a CPU has, where it has its own."""
    if not claim or not params or "CPU" in claim:
        return claim
    return f"{claim} (not with the parameters for a CPU)"


class ScenarioNotFoundError(LookupError):
    """Nothing to run goes by that name; the message says what there is."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))  # it quotes the name, which may hold anything


class ScenarioRow(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, or one plain function, of a list. `missing` and `error` say why it cannot run
    here.

    `own`: it comes from a path that the user named. `function`: it is a plain function of its file.
    """

    multi_line = ("lesson",)
    schema: str = "gpulab.scenario/1"
    name: str
    topic: str = ""
    title: str = ""
    lesson: str = ""
    claim: str = ""
    path: str = ""
    variants: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    """What each variant does, in a paragraph."""
    against: dict[str, str] = {}
    """Which other each variant is compared with: on a ladder the rung below. One for scale is not
    in it.
    """
    params: dict[str, Param] = {}
    cpu: dict[str, Param] = {}
    """Parameters that differ on a CPU."""
    sweep: dict[str, tuple[Param, ...]] = {}
    missing: Finding | None = None
    recording: str = ""
    """The kind of device on which a run of it was recorded that ships."""
    hides: Finding | None = None
    """Which other file it keeps from being found by its name."""
    error: str | None = None
    own: bool = False
    function: bool = False


@dataclass(frozen=True)
class Entry:
    """One scenario of the catalog, or one plain `function` of a file; or the error that keeps it
    from running.

    `source` is what was read, all of it: its UTF-8 has the `sha256`. `own`: it comes from a path
    that the user named. `judge` is the source of the scenario that judges it, where it is the
    answer to an exercise: `text` has its lesson. `hides`: which other file of its name it keeps
    from being found.
    """

    name: str
    path: Path
    sha256: str = ""
    text: ScenarioText = EMPTY
    error: UnreadableError | None = None
    function: str | None = None
    own: bool = False
    source: str = ""
    judge: str = ""
    hides: Finding | None = None
    command: tuple[str, ...] = ()
    """Of a program that is started as it is; nothing of it is read but its script, to be shown."""
    saved: bool = False
    """It comes from a run file: its own file may be another by now, or on another machine."""
    heading: str = ""
    """Under which it is listed, in place of its topic."""
    row_of_file: ScenarioRow | None = None
    """What lists show of it, where its run file says more than its text."""

    @property
    def scenario(self) -> Scenario | None:
        return self.text.scenario

    @property
    def title(self) -> str:
        """The first line of the lesson, or of the function's docstring."""
        return one_line(self._lesson.partition("\n")[0][:TEXT_LENGTH]) or self.name

    @property
    def missing(self) -> Finding | None:
        """Return what keeps it from running here: a need that the machine does not meet, or
        required arguments.
        """
        if self.saved:
            return None
        if function := self._plain_function:
            if not function.required:
                return None
            return takes_arguments(arguments=list(function.required))
        return first_missing(self.scenario.needs) if self.scenario else None

    def skipped(self, device: str | None) -> dict[str, Finding]:
        """The variants that are left out on a device, with what each needs."""
        variants = self.scenario.variants.values() if self.scenario else ()
        needs = {variant.name: first_missing(variant.needs, device) for variant in variants}
        return {name: reason for name, reason in needs.items() if reason is not None}

    @property
    def can_be_guessed(self) -> bool:
        """Return whether there is a speedup to guess, of a run here or of its recording."""
        if self.saved or self.scenario is None or not self.row.against:
            return False
        if self.scenario.shows in (Shows.CURVE, Shows.CLOCKS):
            return False
        return not self.missing or bool(self.row.recording)

    @cached_property
    def row(self) -> ScenarioRow:
        """Return what a list shows of it; safe for a terminal."""
        if self.row_of_file:
            topic = self.heading or self.row_of_file.topic
            return replace_fields(self.row_of_file, topic=topic)
        scenario = self.scenario
        row = ScenarioRow(
            name=self.name,
            topic=self.heading,
            title=self.title,
            path=shown_path(self.path),
            own=self.own,
            hides=self.hides,
        )
        if self.error:
            return replace_fields(row, error=one_line(str(self.error)))
        if self.command:
            from gpulab.core.secrets import masked

            title = one_line(plain(" ".join(masked(self.command))))[:TEXT_LENGTH]
            return replace_fields(row, title=title, function=True)
        if self.function or scenario is None:
            variants, summaries = (self.function or "",), (one_line(self._lesson),)
            return replace_fields(
                row, missing=self.missing, function=True, variants=variants, summaries=summaries
            )
        return replace_fields(
            row,
            topic=self.heading or one_line(scenario.topic),
            lesson=plain(self._lesson),
            claim=one_line(scenario.claim),
            variants=tuple(scenario.variants),
            summaries=tuple(one_line(variant.summary) for variant in scenario.variants.values()),
            against=_baselines(scenario),
            params=readable(scenario.params),
            cpu=readable(scenario.cpu),
            sweep=readable(scenario.sweep),
            missing=self.missing,
            recording="" if self.own else _recorded_on(self.name),
        )

    @property
    def _plain_function(self) -> PlainFunction | None:
        return self.text.functions.get(self.function) if self.function else None

    @property
    def _lesson(self) -> str:
        return self._plain_function.summary if self._plain_function else self.text.lesson


def read_file(path: Path, kept: KeptTexts | None = None) -> Entry:
    """Read one file, once, or take what was kept of it. A file with any fault is an entry with its
    error.
    """
    path = real_path(path)
    name, digest, source = shown_path(path.stem), "", ""
    try:
        str(path).encode()
        data = read_regular(path, SOURCE_BYTES)
        digest = sha256(data).hexdigest()
        source = source_of(data)
        text, judging = _judged(kept.read(digest, source) if kept else read_text(source))
        return Entry(name, path, digest, text, source=source, judge=judging)
    except UnreadableError as raised:
        error = raised
    except UnicodeEncodeError:
        error = UnreadableError(1, "its path is not UTF-8", "rename the file or folder")
    except OSError as raised:
        error = UnreadableError(
            1, f"cannot be read: {raised.strerror or raised}", "is this a Python file?"
        )
    except Exception as raised:  # one file must not keep the others from being listed
        error = UnreadableError(1, f"cannot be read: {type(raised).__name__}", "simplify the file")
    return Entry(name, path, digest, error=error, source=source)


def _judged(text: ScenarioText) -> tuple[ScenarioText, str]:
    """(the text, of an answer to an exercise with the lesson and the scenario of its judge; the
    judge's text).
    """
    if text.exercise is None or text.scenario is not None:
        return text, ""
    from gpulab.catalog.exercises import NoExerciseError, judge  # when an answer is there

    try:
        judging = judge(text.exercise)
    except NoExerciseError as error:
        raise UnreadableError(1, str(error), "gpulab --new --exercise NAME writes one") from None
    read = read_text(judging)
    return replace(text, lesson=read.lesson, scenario=read.scenario), judging


def read_again(entry: Entry) -> Entry:
    """The same entry as its file is now; where the file has lost what it was, an entry with that
    error.
    """
    if entry.command or entry.saved:
        return entry
    now = read_file(entry.path)
    error = now.error
    if entry.function and not error and entry.function not in now.text.names:
        error = UnreadableError(
            1, f"there is no function {entry.function} any more", "define it, or name another"
        )
    elif not entry.function and not error and not now.scenario:
        error = _NOTHING_TO_RUN
    return replace(
        now, name=entry.name, function=entry.function, own=entry.own, hides=entry.hides, error=error
    )


def function_entry(entry: Entry, function: str) -> Entry:
    """The entry of one plain function of a file."""
    return replace(entry, name=f"{entry.name}:{function}", function=function)


def folders() -> list[Path]:
    """Return where scenarios are looked for: here, `$GPULAB_SCENARIOS`, the ones that ship."""
    named = [
        expanded(Path(part))
        for part in os.environ.get("GPULAB_SCENARIOS", "").split(os.pathsep)
        if part
    ]
    # The package first: an editable install keeps its scenarios next to the package instead.
    package = Path(__file__).parent.parent
    shipped = package / "scenarios"
    return [
        Path("scenarios"),
        *named,
        shipped if shipped.is_dir() else package.parent / "scenarios",
    ]


def catalog(paths: Iterable[Path] = ()) -> list[Entry]:
    """Those of `paths` first, as they were named, then all others by topic; the first of a name is
    taken.

    Of a file that is named and has no Scenario, each public function is an entry; in a folder it is
    passed over. Of files that are named and have the same name, the later ones have that of their
    folder too. ScenarioNotFoundError where a folder that is named has nothing to run.
    """
    entries: dict[str, Entry] = {}
    kept = KeptTexts()
    for path in paths:
        named = _entries_in(path, kept) if is_folder(path) else _entries_of(path)
        if not named:
            raise ScenarioNotFoundError(
                f"{path}: no scenario in this folder; gpulab --new FILE writes one"
            )
        for entry in named:
            name = entry.name
            if name in entries and entries[name].path != entry.path:
                name = f"{shown_path(entry.path.parent.name)}/{name}"
            entries.setdefault(name, replace(entry, name=name, own=True))
    others: dict[str, Entry] = {}
    *_, shipped = places = [real_path(folder) for folder in folders()]
    for folder in dict.fromkeys(places):  # in a checkout, ./scenarios are the ones that ship
        for entry in _entries_in(folder, kept) if is_folder(folder) else ():
            found = entries if entry.name in entries else others
            namesake = found.setdefault(entry.name, entry)
            if namesake.path != entry.path:
                found[entry.name] = _hiding(namesake, entry, lesson=folder == shipped)
    kept.keep()
    return [*entries.values(), *sorted(others.values(), key=_order)]


def find(name: str) -> Entry:
    """A scenario by its name or its file. A broken file is an entry with its error.
    ScenarioNotFoundError.
    """
    if name.endswith(".py") or os.sep in name:
        path = Path(name)
        if not is_there(path):
            raise ScenarioNotFoundError(f"there is no file {name}")
        entry = read_file(path)
        if not entry.error and not entry.scenario:
            raise ScenarioNotFoundError(_without_scenario(name, entry))
        return entry
    entries = {entry.name: entry for entry in catalog()}
    if name in entries:
        return entries[name]
    close = get_close_matches(name, entries, n=3)
    message = f"there is no scenario {name!r}"
    if close:
        message += f"; did you mean {' or '.join(close)}?"
    raise ScenarioNotFoundError(message)


def _hiding(entry: Entry, hidden: Entry, *, lesson: bool) -> Entry:
    """`lesson`: the hidden file ships with the lab. Of several hidden ones that is the last."""
    file, other = shown_path(entry.path), shown_path(hidden.path)
    return replace(entry, hides=hides_another(file=file, hidden=other, lesson=lesson))


def _entries_in(folder: Path, kept: KeptTexts) -> list[Entry]:
    entries = [read_file(path, kept) for path in python_files(folder)]
    return sorted((entry for entry in entries if entry.error or entry.scenario), key=_order)


def _entries_of(path: Path) -> list[Entry]:
    entry = read_file(path)
    if entry.error or entry.scenario:
        return [entry]
    if entry.text.functions:
        return [function_entry(entry, function) for function in entry.text.functions]
    return [replace(entry, error=_NOTHING_TO_RUN)]


def _without_scenario(name: str, entry: Entry) -> str:
    functions = entry.text.functions
    if not functions:
        return (
            f"{name} has no Scenario and no function to time; gpulab --new FILE writes a scenario "
            "to start from"
        )
    return (
        f"{name} has no Scenario; to time a function of it, run {name}:FUNCTION, one of "
        f"{', '.join(functions)}"
    )


def _recorded_on(name: str) -> str:
    path = recording(name)
    return recorded_on(path) if path else ""


def _baselines(scenario: Scenario) -> dict[str, str]:
    names = list(scenario.variants)
    against = {}
    for above, name in pairwise(names):
        declared = scenario.variants[name].against
        if declared == FIRST:
            declared = above if scenario.ladder else names[0]
        if declared is not None:
            against[name] = declared
    return against


def _order(entry: Entry) -> tuple[int, str, int, str]:
    topic = entry.scenario.topic if entry.scenario else ""
    place = TOPICS.index(topic) if topic in TOPICS else len(TOPICS)
    course = present("course.report")
    lessons = course.lesson_places() if course else {}
    return place, topic, lessons.get(entry.name, len(lessons)), entry.name


_PLACES = ("name", "terms", "title", "lesson", "code")
_SYNONYMS = {
    "allreduce": ("all-reduce",),
    "checkpointing": ("recomputation",),
    "flashattention": ("flash attention",),
    "fusion": ("fuse",),
    "gemm": ("matmul",),
    "recompilation": ("recompile",),
    "tensorcore": ("tensor core",),
    "warmup": ("warm-up",),
}
"""What lessons call it, by what somebody types; a word of one lesson stands in its `terms`."""


_EMPTY_WORDS = (
    "a about an and are avoid be can code do does explain fast faster for from get has have how i "
    "in is it its lesson make me mean means model much my of on or our program run runs show slow "
    "slower so than that the there this to too what what's when where which why with work works "
    "you your"
)
"""Words of a question that say nothing of what it is about."""
_SHORT = 2
"""Letters of a word that is looked for as a whole first: sm is in small."""


def search(entries: Iterable[Entry], text: str) -> dict[str, str]:
    """Return where (name, terms, title, lesson, code), by the names of the entries in which most
    words of the text, or synonyms of them, are found: all of them, if any entry has all. Where is
    the place of the word that the fewest have.
    """
    words = _words(text)
    read = {entry.name: _texts(entry) for entry in entries}
    for has in (_has, _has_anywhere):
        places = {name: _places(texts, words, has) for name, texts in read.items()}
        if most := max(map(len, places.values()), default=0):
            break
    else:
        return {}
    counts = Counter(word for found in places.values() for word in found)
    return {
        name: _PLACES[found[min(found, key=counts.__getitem__)]]
        for name, found in places.items()
        if len(found) == most
    }


def by_name(found: Mapping[str, str]) -> list[str]:
    """Return those whose names have it; where none has, those that have it in the next place."""
    nearest = min(found.values(), key=_PLACES.index, default="")
    return [name for name, place in found.items() if place == nearest]


def _words(text: str) -> list[str]:
    """Return those that mean something; all of them where none does."""
    typed = text.casefold().split()
    empty = {"", *_EMPTY_WORDS.split()}
    words = [word.strip("?!.,;:'\"()") for word in typed]
    return [word for word in words if word not in empty] or typed


def _texts(entry: Entry) -> list[str]:
    """Return what is read in an entry, by place."""
    terms = entry.scenario.terms if entry.scenario else ()
    texts = (entry.name, "\n".join(terms), entry.title, entry.text.lesson, entry.source)
    return [text.casefold() for text in texts]


def _places(texts: list[str], words: list[str], has: Callable[[str, str], bool]) -> dict[str, int]:
    """Return the first place of each word that is found."""
    places: dict[str, int] = {}
    for word in words:
        for place, text in enumerate(texts):
            if has(text, word):
                places.setdefault(word, place)
    return places


def _has(text: str, word: str) -> bool:
    if len(word) <= _SHORT:
        return re.search(rf"(?<![a-z\d]){re.escape(word)}s?(?![a-z\d])", text) is not None
    return _has_anywhere(text, word)


def _has_anywhere(text: str, word: str) -> bool:
    one = word[:-1] if word.endswith("s") else word
    return any(form in text for form in (word, one, *_SYNONYMS.get(word, ())))
