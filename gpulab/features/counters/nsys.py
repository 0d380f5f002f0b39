"""A report by Nsight Systems, of some steps of a variant in a process of its own, or of a whole
program. The options are those of nsys 2021.4 and later.

Calls of the operating system are not recorded: of 49 steps on a CPU they were 1.4 million events,
54 MB and a minute of nsys's own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

import msgspec

from gpulab.core.counted_steps import COMMAND, StepsJob
from gpulab.core.text import one_line
from gpulab.options import UsageError
from gpulab.proc.orphans import Orphans
from gpulab.proc.spawn import HangsError, capture

_MISSING = (
    "--nsys: there is no nsys on PATH; apt install nsight-systems-cli (NVIDIA's repository), or "
    "https://developer.nvidia.com/nsight-systems"
)
_PROFILE = (
    *("profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"),
    *("--export=sqlite", "--force-overwrite=true"),
)
_WITH_END = 'trap : INT QUIT HUP TERM; : >"$0"; "$@"; code=$?; echo $code >"$0"; exit $code'
"""A shell that makes a file as the program begins, and writes its exit code there as soon as it has
ended; it outlives what is typed. nsys gives another code where it fails.
"""


class NsysReport:
    """The file that nsys is to write, and nsys; UsageError where there is none."""

    limit_s = 300.0
    """For nsys to end once its program has: to write a report takes seconds to minutes, and its end
    has been seen to hang.
    """

    def __init__(self, file: Path) -> None:
        self._nsys = shutil.which("nsys") or ""
        if not self._nsys:
            raise UsageError(_MISSING)
        self._file = file.absolute()
        if file.suffix != ".nsys-rep" or not self._file.parent.is_dir():
            raise UsageError("--nsys: write FILE.nsys-rep, in a folder that exists")
        of_before = ((each, self._file.with_suffix(each)) for each in (".nsys-rep", ".sqlite"))
        self._before = {suffix: _written_ns(path) for suffix, path in of_before}
        self._ended: Path | None = None
        """Where a program leaves its exit code."""
        self._overdue_s = 0.0

    def of_program(self, command: Sequence[str], folder: Path) -> list[str]:
        """Return the command of a program under nsys; `folder` is for its exit code."""
        self._ended = folder / "ended"
        shell = ("/bin/sh", "-c", _WITH_END, str(self._ended), *command)
        return self._profile(shell, "--wait=primary", "--kill=none")

    def exit_code(self) -> int | None:
        """Return that of a program that has ended, whatever nsys does; None before, or of none."""
        with suppress(OSError, ValueError):
            return int(self._ended.read_text()) if self._ended else None
        return None

    def began(self) -> bool:
        """Return whether nsys has started its program."""
        return self._ended is not None and self._ended.exists()

    def hangs(self) -> bool:
        """Return whether the program ended so long ago that nsys should have, too. It is asked
        again and again.
        """
        if not self._overdue_s and self.exit_code() is not None:
            self._overdue_s = monotonic() + self.limit_s
        return bool(self._overdue_s) and monotonic() > self._overdue_s

    def of_steps(
        self, asked: StepsJob, environment: Mapping[str, str], started: Callable[..., object]
    ) -> list[str]:
        """Run steps of a variant under nsys in the job's folder; what came of it, in lines.
        `started` gets what ends it.
        """
        assert asked.job.folder is not None
        file = Path(asked.job.folder, "asked.json")
        file.write_bytes(msgspec.json.encode(asked) + b"\n")
        # nsys may keep its own stdin from the program
        shell = ("/bin/sh", "-c", 'exec "$@" <"$0"', str(file), *COMMAND)
        ranges = ("--capture-range=cudaProfilerApi", "--capture-range-end=stop")
        command = self._profile(shell, *ranges * (asked.job.device != "cpu"))
        done = f"{asked.steps} steps of {asked.variants[0]} under nsys, after the measurement"
        return [done, *self.outcome(self._run(command, started, environment))]

    def outcome(self, printed: str = "") -> list[str]:
        """Say where the report is, or why there is none, as was printed."""
        if _written_ns(self._file) in (None, self._before[".nsys-rep"]):
            said = re.findall(r'"message":"([^"]+)', printed) or printed.split("\n")[-1:]
            half = self._file.with_suffix(".qdstrm")
            also = f"; QdstrmImporter of Nsight Systems may convert {half}" * half.exists()
            return [f"nsys made no report: {one_line(said[0]) or 'it does not say why'}{also}"]
        tables = self._file.with_suffix(".sqlite")
        how = f"gpulab --why {tables}"
        if _written_ns(tables) in (None, self._before[".sqlite"]):
            how = f"nsys export --type sqlite {self._file}, then {how}"
        return [f"nsys report: {self._file}", f"where its time went: {how}"]

    def _profile(self, command: Sequence[str], *more: str) -> list[str]:
        output = f"--output={str(self._file.with_suffix('')).replace('%', '%%')}"
        return [self._nsys, *_PROFILE, *more, output, *command]

    def _run(
        self, command: Sequence[str], started: Callable[..., object], environment: Mapping[str, str]
    ) -> str:
        """Run nsys; what it printed. Nothing that it started stays."""
        with Orphans("GPULAB_NSYS") as orphans:
            marked = {**environment, **orphans.environment}
            try:
                done = capture(command, self.limit_s, environment=marked, started=started)
            except (HangsError, OSError) as error:
                return str(error) or f"it did not end within {self.limit_s:g} s, and was killed"
            finally:
                orphans.end()
        return (done.output + done.errors).decode(errors="replace").strip()


def _written_ns(file: Path) -> int | None:
    """When it was written; None where it is not there, or empty."""
    with suppress(OSError):
        return file.stat().st_mtime_ns if file.stat().st_size else None
    return None
