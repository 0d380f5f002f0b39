"""`--compare -- PROGRAM -- PROGRAM`: two programs run in turn, each from its start to its end."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from math import log
from time import perf_counter

from msgspec.structs import replace

from gpulab.core.findings import Finding
from gpulab.core.statuses import ExitCode, conclusion_of
from gpulab.core.text import cut, one_line
from gpulab.features.compare.analysis import judged
from gpulab.features.compare.findings import prints_differ, side_failed
from gpulab.features.compare.measured import Pairs, row_of
from gpulab.features.compare.report import ComparisonReport, ScenarioComparison, Side
from gpulab.features.gate.thresholds import Thresholds
from gpulab.headless.output import Terminal
from gpulab.headless.sides import measure_pairs
from gpulab.options import Options, UsageError
from gpulab.proc.fork import die_with_parent
from gpulab.proc.orphans import Orphans
from gpulab.proc.spawn import Captured, HangsError, capture
from gpulab.session.drive import Interrupts, StoppedError
from gpulab.session.interleaved import SideError

_NAME = "program"
_USAGE = "write gpulab --compare -- python a.py -- python b.py"
_SEPARATOR = "--"


def measure_programs(
    words: Sequence[str],
    options: Options,
    terminal: Terminal,
    demanded: Callable[[str], Thresholds],
) -> ComparisonReport:
    """Run both until it is known which is faster, and whether the second is slower than what is
    demanded. UsageError where one cannot be started.
    """
    for flag in options.given("chosen", "arguments", "device", "threads", "smoke"):
        raise UsageError(f"{flag}: a program takes its own arguments; {_USAGE}")
    pair = _Pair(_commands(words), options.seed, options.timeout_s or 600.0)
    with Orphans() as orphans, Interrupts() as interrupts:
        interrupts.stop_with(pair.stop)
        pair.environment = {**os.environ, **orphans.environment}
        report = _measured(pair, options, terminal, demanded(_NAME).slower)
        orphans.end()
        interrupts.end(answered=report.exit_code == ExitCode.INTERRUPTED)
    return report


def _commands(words: Sequence[str]) -> tuple[list[str], list[str]]:
    if _SEPARATOR not in words:
        raise UsageError(f"--compare takes two programs: {_USAGE}")
    place = words.index(_SEPARATOR)
    before, after = list(words[:place]), list(words[place + 1 :])
    if not before or not after or _SEPARATOR in after:
        raise UsageError(f"--compare takes two programs: {_USAGE}")
    for command in (before, after):
        if shutil.which(command[0]) is None:
            raise UsageError(f"{command[0]}: no such program")
    return before, after


def _measured(
    pair: _Pair, options: Options, terminal: Terminal, most_slower: float | None
) -> ComparisonReport:
    try:
        terminal.note("each once, untimed; then in turn", "dim")
        findings = pair.first_runs()
        measure_pairs(pair.measure, pair.pairs, options, terminal, most_slower)
    except SideError as error:
        reason = side_failed(side=error.side, message=str(error))
        report = pair.report([])
        return _ended(report, ExitCode.FAILED, reason)
    except StoppedError:
        return _ended(pair.report([]), ExitCode.INTERRUPTED)
    return judged(pair.report(findings))


def _ended(
    report: ComparisonReport, code: ExitCode, reason: Finding | None = None
) -> ComparisonReport:
    return replace(report, outcome=conclusion_of(code), exit_code=code, reason=reason)


class _Pair:
    """Two programs, and the seconds of each of their runs, which are paired."""

    def __init__(
        self, commands: tuple[list[str], list[str]], seed: int | None, timeout_s: float
    ) -> None:
        """`timeout_s`: how long a program may take."""
        self._commands, self._timeout_s = commands, timeout_s
        self._draw = random.Random(seed)
        self._kill: Callable[[], None] = lambda: None
        self._stopped = False
        self._dies = partial(die_with_parent, os.getpid())
        """In the process of a program, before it begins."""
        self._at = datetime.now(UTC).isoformat(timespec="seconds")
        self._times = Pairs()
        self.pairs: Mapping[str, Pairs] = {_NAME: self._times}
        self.environment: Mapping[str, str] = {}
        """What marks the processes that have to be gone at the end."""

    def stop(self) -> None:
        """From a signal handler: end what runs."""
        self._stopped = True
        self._kill()

    def first_runs(self) -> list[Finding]:
        """Run each once untimed, with caches that another program left; whether they print the
        same.
        """
        a, b = (self._run(command)[1].output for command in self._commands)
        if a == b or self._run(self._commands[0])[1].output != a:
            return []
        lines = zip(a.splitlines(), b.splitlines(), strict=False)
        differing = [number for number, (own, other) in enumerate(lines, 1) if own != other]
        shorter = min(len(a.splitlines()), len(b.splitlines()))
        return [prints_differ(_NAME, line=differing[0] if differing else shorter + 1)]

    def measure(self) -> None:
        """Run both once more, in random order."""
        seconds = [0.0, 0.0]
        for side in self._draw.sample((0, 1), 2):
            seconds[side], _ = self._run(self._commands[side])
        self._times.ratios.append(log(seconds[1] / seconds[0]))
        self._times.before_s.append(seconds[0])
        self._times.after_s.append(seconds[1])

    def report(self, findings: list[Finding]) -> ComparisonReport:
        """Return what is known by now."""
        before, after = map(shlex.join, self._commands)
        rows = [row_of(_NAME, self.pairs, "", None)] if self._times.count else []
        comparison = ScenarioComparison(
            scenario=_NAME,
            a=Side(name=before, scenario=_NAME, at=self._at),
            b=Side(name=after, scenario=_NAME, at=self._at),
            rows=rows,
            findings=findings,
        )
        return ComparisonReport(before=before, after=after, comparisons=[comparison])

    def _run(self, command: Sequence[str]) -> tuple[float, Captured]:
        """Seconds from start to end, and what it printed. StoppedError, SideError."""
        started = perf_counter()
        try:
            ended = capture(
                command,
                self._timeout_s,
                environment=self.environment,
                started=self._begun,
                before=self._dies,
            )
        except OSError as error:
            raise UsageError(f"{command[0]}: {error.strerror}") from None
        except HangsError:
            said = f"no end within {self._timeout_s:.0f} s (--timeout)"
            raise SideError(shlex.join(command), said) from None
        passed_s = perf_counter() - started
        if self._stopped:
            raise StoppedError
        if ended.code:
            *_, last = ended.errors.decode(errors="replace").strip().splitlines() or [""]
            said = f": {cut(one_line(last), 200)}" if last else ""
            how = f"exit code {ended.code}"
            if ended.code < 0:
                how = f"killed by signal {-ended.code} ({signal.strsignal(-ended.code)})"
            raise SideError(shlex.join(command), how + said)
        return passed_s, ended

    def _begun(self, kill: Callable[[], None]) -> None:
        self._kill = kill
        if self._stopped:
            kill()
