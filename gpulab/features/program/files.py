"""What the followers in the processes of a program write, read as events: a folder with a file for
each process.

The program could write there too. So each line is checked like a line of a pipe, and what is no
such line is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from gpulab.commit import version
from gpulab.core.events import Event, WorkerReady
from gpulab.core.files import open_regular
from gpulab.core.findings import Finding
from gpulab.core.jobs import ProfileOptions
from gpulab.core.limits import LINE_BYTES
from gpulab.core.machine import Device, cpu_name, driver_version
from gpulab.core.replaced import Replaced
from gpulab.core.values import Line, Name, PositiveCount, Seconds, StepTime, Text
from gpulab.features import present
from gpulab.features.program.events import ChildExited, ProcessFollowed, StepsFollowed, WindowKind
from gpulab.features.program.findings import recorded_elsewhere, torch_of_another_thread

AGENT = Path(__file__).with_name("agent")
FOLDER, PROFILE = "GPULAB_FOLLOW", "GPULAB_FOLLOW_PROFILE"
_COLLECTIVES = "256"
"""That torch keeps of each rank: reading them takes as long as there are many, 2 ms of these."""
_CHUNK = 1 << 20


def environment(
    folder: Path, command: Sequence[str], profile: ProfileOptions | None
) -> dict[str, str]:
    """That of the program: this process's own, with what lets its Pythons be followed."""
    variables = dict(os.environ)
    if _is_without_site(command):
        return variables
    before = variables.get("PYTHONPATH")
    variables["PYTHONPATH"] = f"{AGENT}{os.pathsep}{before}" if before else str(AGENT)
    variables.setdefault("TORCH_FR_BUFFER_SIZE", _COLLECTIVES)
    variables.setdefault("TORCH_NCCL_ENABLE_TIMING", "1")
    records = "off"
    if profile is not None:
        records = "at once" if profile.at_once else "on"
    return {**variables, FOLDER: str(folder), PROFILE: records}


def _is_without_site(command: Sequence[str]) -> bool:
    """Return whether a Python is started with -S: then it runs no sitecustomize, and a folder that
    is first on its path stays there.
    """
    if not Path(command[0]).name.startswith("python"):
        return False
    words = iter(command[1:])
    for word in words:
        if word in ("-W", "-X"):
            next(words, None)
        elif not word.startswith("-") or word.startswith(("--", "-c", "-m")):
            return False
        elif "S" in word and not word.startswith(("-W", "-X")):
            return True
    return False


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A line of a process."""


class _Torch(_Message, frozen=True, tag="torch"):
    pass


class _OwnTrace(_Message, frozen=True, tag="own trace"):
    file: Text


class _Elsewhere(_Message, frozen=True, tag="profiled elsewhere"):
    other_thread: bool = False


class _Device(_Message, frozen=True, kw_only=True, tag="device"):
    device: dict[Name, str | float | int]
    versions: dict[Name, Line | None]


class RecordedSteps(_Message, frozen=True, kw_only=True, tag="recorded"):
    """A window under the profiler: `recording` says what it keeps, `file` is its trace."""

    recording: Name
    steps: PositiveCount
    seconds: StepTime
    cpu_s: Seconds
    delay_s: Seconds | None
    """That its thread was ready to run and did not, where the scheduler says so."""
    file: Text


_lines: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_ABOUT = _Torch | _OwnTrace | _Elsewhere | _Device | RecordedSteps
_EVENTS: dict[str, type[Event]] = {
    "process": ProcessFollowed,
    "steps": StepsFollowed,
    "exited": ChildExited,
}
"""Lines that have the fields of an event, but for whose they are."""
if late := present("late.events"):
    _EVENTS["collectives"] = late.Collectives


class FollowedProcess:
    """One process: what its file said so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._partial = b""
        self.process: ProcessFollowed | None = None
        self.device: _Device | None = None
        self.windows: list[StepsFollowed] = []
        """Of the recordings, and the plain ones beside them."""
        self.recordings: dict[str, RecordedSteps] = {}
        self.own_traces: list[str] = []
        """That the program wrote itself."""
        self.not_recorded: Finding | None = None
        """Why it is not, or no more."""
        self.plain_for_ever = False
        """Whether nothing more will be recorded."""

    @property
    def rank(self) -> int:
        return self.process.rank if self.process else 0

    def read(self, variant: str) -> Iterator[_Message | Event]:
        """Yield the lines since the last call; those that are events, as events of the variant."""
        with suppress(OSError), open_regular(self._path) as file:
            file.seek(self._offset)
            data = file.read(_CHUNK)
            self._offset += len(data)
            *lines, partial = (self._partial + data).split(b"\n")
            self._partial = partial[: LINE_BYTES + 1]
            for line in lines:
                with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
                    message = self._message(_lines.decode(line), variant)
                    self._take(message)
                    yield message

    def _message(self, line: dict[str, Any], variant: str) -> _Message | Event:
        """ValidationError where it is none."""
        kind = _EVENTS.get(str(line.get("type")))
        if kind is None:
            about: _Message = msgspec.convert(line, _ABOUT)
            return about
        pid = self.process.pid if self.process else None
        whose = {"type": kind.__struct_config__.tag, "variant": variant, "rank": self.rank}
        if kind is ProcessFollowed:
            rank = line.get("rank")
            whose |= {"rank": rank or 0, "ranked": rank is not None}
        event: Event = msgspec.convert({"pid": pid, **line, **whose}, kind)
        return event

    def _take(self, message: _Message | Event) -> None:
        match message:
            case ProcessFollowed():
                self.process = message
            case _OwnTrace():
                self.own_traces.append(message.file)
            case _Device():
                self.device = message
            case RecordedSteps():
                self.recordings[message.recording] = message
            case _Elsewhere():
                own = recorded_elsewhere()
                self.not_recorded = torch_of_another_thread() if message.other_thread else own
            case StepsFollowed(kind=WindowKind.PLAIN, synchronised=False):
                self.plain_for_ever = True
            case StepsFollowed(kind=WindowKind.PLAIN | WindowKind.PROFILED):
                self.windows.append(message)


class Followers:
    """The folder of one run; `variant` is the name of its program."""

    def __init__(self, folder: Path, variant: str) -> None:
        self._folder, self._variant = folder, variant
        self._known: dict[str, FollowedProcess] = {}
        self._pids: set[int] = set()
        self._ready = False
        bills = present("bill.events")
        self._bills = Replaced(bills.ProcessBooked) if bills else None
        trials = present("trials.events")
        self._trials = Replaced(trials.TrialsMeasured) if trials else None

    @property
    def processes(self) -> list[FollowedProcess]:
        return list(self._known.values())

    def read(self) -> Iterator[Event]:
        """Yield what is new, as events."""
        for name in self._names():
            if name.endswith((".jsonl", ".start")) and name not in self._known:
                self._known[name] = FollowedProcess(self._folder / name)
            if name.endswith(".bill") and self._bills is not None:
                for bill in self._bills.newer(self._folder / name):
                    yield replace(bill, is_root=bill.parent == os.getpid())
            if name.endswith(".trials") and self._trials is not None:
                yield from self._trials.newer(self._folder / name)
        for name, process in self._known.items():
            if name.endswith(".start") and process.process is not None:
                continue
            for message in process.read(self._variant):
                yield from self._events(process, message)

    def _names(self) -> list[str]:
        """Return the names of regular files: a pipe would block, and a link leads elsewhere."""
        with suppress(OSError), os.scandir(self._folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        return []

    def _events(self, process: FollowedProcess, message: _Message | Event) -> Iterator[Event]:
        about = process.process
        if about is None:
            return
        match message:
            case ProcessFollowed():
                if message.torch or about.pid not in self._pids:
                    self._pids.add(about.pid)
                    yield message
            case Event():
                yield message
            case _Torch():
                yield replace(about, torch=about.torch or "")
            case _Device() if not self._ready and process.rank == 0:
                with suppress(msgspec.ValidationError, TypeError):
                    device = _device(message)
                    self._ready = True
                    versions = {"gpulab": version(), "python": about.python, **message.versions}
                    versions["driver"] = driver_version()
                    yield WorkerReady(pid=about.pid, device=device, environment=versions)


def _device(message: _Device) -> Device:
    """ValidationError, TypeError where it describes none."""
    fields = dict(message.device)
    if fields.get("kind") != "cuda":
        fields["name"] = cpu_name()
        fields["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return msgspec.convert(fields, Device)
