"""`--nsys FILE`: a report by Nsight Systems, of some steps of a variant in a process of its own, or
of a program as a whole. The options are those of nsys 2021.4 and later.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from gpulab.core.text import one_line
from gpulab.features.counters.job import COMMAND, State, StepsJob, StepsState
from gpulab.options import UsageError
from gpulab.proc.orphans import Orphans
from gpulab.proc.spawn import HangsError, capture

Started = Callable[[Callable[[], None]], object]
"""Is called with what kills a process that has started."""
_MISSING = (
    "--nsys: there is no nsys on PATH; apt install nsight-systems-cli (NVIDIA's repository), or "
    "https://developer.nvidia.com/nsight-systems"
)
_WITH_END = 'trap : INT QUIT HUP TERM; : >"$0"; "$@"; code=$?; echo $code >"$0"; exit $code'
"""A shell that makes a file as the program begins, and writes its exit code there as soon as it has
ended; it outlives what is typed. nsys gives another code where it fails.
"""


class NsysReport:
    """The file that nsys is to write; UsageError where there is no nsys."""

    limit_s = 300.0
    """For nsys to end once its program has: to write a report takes seconds to minutes, and its end
    has been seen to hang.
    """

    def __init__(self, file: Path) -> None:
        self._nsys = shutil.which("nsys")
        if self._nsys is None:
            raise UsageError(_MISSING)
        self._file = file.absolute()
        self._before = _written_ns(self._file)

    def command(self, command: Sequence[str], *more: str) -> list[str]:
        """Return the command under nsys."""
        assert self._nsys is not None
        output = f"--output={str(self._file.with_suffix('')).replace('%', '%%')}"
        how = ("--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none")
        return [self._nsys, "profile", *how, *more, "--force-overwrite=true", output, *command]

    def of_program(self, command: Sequence[str], ended: Path) -> list[str]:
        """Return the command of a program under nsys; its exit code goes to the file `ended`."""
        shell = ("/bin/sh", "-c", _WITH_END, str(ended), *command)
        return self.command(shell, "--wait=primary", "--kill=none")

    def outcome(self, started: Started, why_not: str = "") -> list[str]:
        """Say where the report is, and export it; or `why_not`, as nsys or the steps said.
        `started` gets what ends the export.
        """
        if _written_ns(self._file) in (None, self._before):
            half = self._file.with_suffix(".qdstrm")
            if half.exists():
                why_not += f"; it left {half}, which QdstrmImporter of Nsight Systems may convert"
            return [f"nsys made no report: {why_not.lstrip('; ') or 'it does not say why'}"]
        return [f"nsys report: {self._file}", *self._exported(started)]

    def _exported(self, started: Started) -> list[str]:
        tables = self._file.with_suffix(".sqlite")
        how = ("export", "--type=sqlite", "--force-overwrite=true", f"--output={tables}")
        before = _written_ns(tables)
        with suppress(HangsError, OSError):
            self._run([str(self._nsys), *how, str(self._file)], started)
        if _written_ns(tables) in (None, before):
            return [
                f"its times: nsys export --type sqlite {self._file}, then gpulab --why {tables}"
            ]
        return [f"its times: gpulab --why {tables}"]

    def of_steps(
        self, asked: StepsJob, environment: Mapping[str, str], started: Started
    ) -> list[str]:
        """Run steps of a variant under nsys; what came of it, in lines. `started` gets what ends
        it.
        """
        more: tuple[str, ...] = ()
        if asked.job.device != "cpu":
            more = ("--capture-range=cudaProfilerApi", "--capture-range-end=stop")
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            file.write(msgspec.json.encode(asked) + b"\n")
            file.flush()
            # nsys may keep its own stdin from the program
            shell = ("/bin/sh", "-c", 'exec "$@" <"$0"', file.name, *COMMAND)
            try:
                output = self._run(self.command(shell, *more), started, environment)
            except HangsError:
                output = f"it did not end within {self.limit_s:g} s, and was killed"
            except OSError as error:
                output = f"it cannot be started ({error.strerror})"
        done = f"{asked.steps} steps of {asked.variants[0]} under nsys, after the measurement"
        return [done, *self.outcome(started, _reason(output))]

    def _run(
        self, command: Sequence[str], started: Started, environment: Mapping[str, str] = os.environ
    ) -> str:
        """Run nsys; what it printed. Nothing that it started stays. HangsError, OSError."""
        with Orphans("GPULAB_NSYS") as orphans:
            try:
                marked = {**environment, **orphans.environment}
                done = capture(command, self.limit_s, environment=marked, started=started)
            finally:
                orphans.end()
        return (done.output + done.errors).decode(errors="replace")


def _reason(output: str) -> str:
    """Return why the steps failed, or else the last line that was printed."""
    lines = [line for line in map(str.strip, output.splitlines()) if line]
    for line in lines:
        with suppress(msgspec.DecodeError):
            state = msgspec.json.decode(line, type=StepsState)
            if state.state == State.FAILED:
                return f"{state.variant} failed: {state.message}"
    said = [line for line in lines if not line.startswith("{")]
    return one_line(said[-1]) if said else ""


def _written_ns(file: Path) -> int | None:
    """When it was written; None where it is not there, or empty."""
    with suppress(OSError):
        status = file.stat()
        return status.st_mtime_ns if status.st_size else None
    return None
