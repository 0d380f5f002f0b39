"""Samples counters after the measurement: the steps run in one process, the sampler is another."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from math import ceil, expm1
from typing import Any

import msgspec
from msgspec.structs import replace

from gpulab.core.counted_steps import COMMAND, StepsJob, StepsState
from gpulab.core.estimate import Estimate
from gpulab.core.events import Event
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, TimeFunctions
from gpulab.core.payloads import Choice
from gpulab.features.counters_in_time import environment, events, findings
from gpulab.features.counters_in_time.rows import ROWS, SETS, START, columns, rows_of
from gpulab.proc.spawn import DEVNULL, PIPE, TimeoutExpired, spawn
from gpulab.proc.tree import kill_group
from gpulab.session.worker_process import worker_environment
from gpulab.stats.statistics import log_ratios, median_estimate

_FIX = "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, or CAP_SYS_ADMIN"
_ANSWER_S = 300.0
_PASS_NS = 1e7
"""How long the steps of one pass take, in all."""
_MOST_STEPS, _MOST_SAMPLES, _POINTS, _FEWEST = 10_000, 5_000, 200, 20
"""A decode of 100,000 samples fails. A row keeps 200 values, and shows steps of 20 samples."""
_PAIRS, _ROUNDS = 8, 64
"""The fewest that carry an interval; more than all rounds of a variant."""
_BELIEVED = 0.1
"""How far the count of a copy may be from its size."""


class NoCountersError(Exception):
    """There are none, or `counters_failed`: not for what was asked last."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.code)
        self.reason = reason


def sample_counters(
    job: Measure | TimeFunctions, choices: Sequence[Choice], interval_s: float, cancelled: int
) -> Iterator[Event]:
    """Events of the counters over each variant's steps, and at last why there are no more. Nothing
    after `cancelled` can be read.
    """
    sampling = _Sampling(job, round(interval_s * 1e9), cancelled)
    with ExitStack() as processes:
        try:
            yield from sampling.variants(processes, choices)
        except NoCountersError as error:
            sampling.findings.append(error.reason)
    if not select.select([cancelled], [], [], 0)[0]:
        yield events.CountersEnded(sampling=sampling.whole())


def probe() -> tuple[str, Finding | None]:
    """What the first GPU samples, in words, or why it samples nothing."""
    with ExitStack() as processes:
        try:
            sampler = Sampler(processes, "cuda:0", 20_000)
        except NoCountersError as error:
            return "", error.reason
    missing = f", without {', '.join(sampler.missing)}" if sampler.missing else ""
    return f"cupti-python {sampler.package}{missing}", None


def _package_needed(_: str = "") -> Finding:
    return findings.counters_need_package(install=environment.install_line())


_REASONS: Mapping[str, Callable[[str], Finding]] = {
    "No module named": _package_needed,
    "PermissionError": lambda _: findings.counters_not_permitted(fix=_FIX),
    "INSUFFICIENT_PRIVILEGES": lambda _: findings.counters_not_permitted(fix=_FIX),
    "libcuda": lambda error: findings.counters_need_gpu(message=error),
    "no GPU": lambda error: findings.counters_need_gpu(message=error),
}
"""By what an error of the sampler says."""


class Talk:
    """A process that answers lines with lines. `stop` wakes whoever waits for an answer."""

    def __init__(self, name: str, command: Sequence[str], stop: Sequence[int], **how: Any) -> None:
        self._name, self._stop, self._partial = name, stop, b""
        how |= {"stdin": PIPE, "stdout": PIPE, "stderr": DEVNULL, "start_new_session": True}
        try:
            self._process = spawn(command, **how)
        except OSError as error:
            raise NoCountersError(findings.counters_failed(message=str(error))) from None

    def ask(self, line: bytes) -> bytes:
        """The answer to a line; without one, the next that comes. NoCountersError."""
        if line:
            with suppress(BrokenPipeError):
                self._process.stdin.write(line + b"\n")  # type: ignore[union-attr]
        output = self._process.stdout.fileno()  # type: ignore[union-attr]
        while b"\n" not in self._partial:
            ready, _, _ = select.select([output, *self._stop], [], [], _ANSWER_S)
            data = os.read(output, 1 << 18) if ready == [output] else b""
            if not data:
                end = self._end() if ready else "no answer"
                raise NoCountersError(findings.counters_ended(process=self._name, end=end))
            self._partial += data
        answer, _, self._partial = self._partial.partition(b"\n")
        return answer

    def _end(self) -> str:
        self.close()
        code = self._process.returncode
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """End it; one that hangs in the driver is not waited for."""
        if self._process.returncode is None:
            kill_group(self._process.pid, signal.SIGKILL)
        with suppress(TimeoutExpired):
            self._process.wait(5.0)
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.close()  # type: ignore[union-attr]


class Sampler:
    """The sampler of a device. `sets`: what can be sampled in one pass each. NoCountersError."""

    def __init__(
        self, processes: ExitStack, device: str, interval_ns: int, stop: Sequence[int] = ()
    ) -> None:
        command = environment.sampler_command()
        number = None if device == "cpu" else int(device.rpartition(":")[2])
        if command is None and number is None:
            raise NoCountersError(findings.counters_need_gpu(message="this run is on the CPU"))
        if command is None:
            raise NoCountersError(_package_needed())
        self._talk = Talk("the sampler", command, stop)
        processes.callback(self._talk.close)
        self.interval_ns = interval_ns
        self.package = str(self.asked(device=number))
        self.sets = [self.asked(do="supported", metrics=each) for each in SETS]
        sampled = {metric for metrics in self.sets for metric in metrics}
        self.missing = [row.label for row in ROWS.values() if not row.metrics <= sampled]

    def asked(self, **asked: Any) -> Any:
        """The answer. NoCountersError."""
        if "metrics" in asked:
            asked["interval_ns"] = self.interval_ns
        said = msgspec.json.decode(self._talk.ask(msgspec.json.encode(asked)))
        error = said.get("error", "")
        for words, reason in _REASONS.items():
            if words in error:
                raise NoCountersError(reason(error))
        if error:
            raise NoCountersError(findings.counters_failed(message=error))
        return said["answer"]

    def ratios(self) -> Iterator[tuple[str, float]]:
        """By row, what was counted of copies of known size over that size."""
        checked = self.asked(do="check", metrics=self.sets[0])
        for name, row in ROWS.items():
            if row.bytes and row.metric in self.sets[0]:
                size, samples = checked["link" if name.startswith("pcie") else "inside"]
                at = 2 + self.sets[0].index(row.metric)
                counted = row.bytes * sum(sample[at] for sample in samples if sample[0])
                yield name, counted / size / (1 + (name == "l2"))  # there read and written


class _Sampling:
    def __init__(self, job: Measure | TimeFunctions, interval_ns: int, cancelled: int) -> None:
        self._job, self._interval_ns, self._stop = job, interval_ns, [cancelled]
        self._package = ""
        self._ratios: dict[str, float] = {}
        self.findings: list[Finding] = []

    def whole(self) -> events.Sampling:
        """What there is to say of it as far as it came."""
        return events.Sampling(package=self._package, ratios=self._ratios, findings=self.findings)

    def variants(self, processes: ExitStack, choices: Sequence[Choice]) -> Iterator[Event]:
        """Sample one after the other."""
        sampler = Sampler(processes, self._job.device, self._interval_ns, self._stop)
        self._sampler, self._package = sampler, sampler.package
        if process := environment.dcgm_process():
            self.findings.append(findings.counters_beside_dcgm(process=process))
        if sampler.missing:
            self.findings.append(findings.counters_missing(counters=sampler.missing))
        for name, ratio in sampler.ratios():
            self._ratios[name] = ratio
            if abs(ratio - 1) > _BELIEVED:
                label = ROWS[name].label
                self.findings.append(findings.counter_deviates(counter=label, ratio=ratio))
        variables = worker_environment(self._job)
        self._talk = Talk("the process of the steps", COMMAND, self._stop, env=variables)
        processes.callback(self._talk.close)
        names = [info.name for info in self._job.subject.variants if info.missing is None]
        asked = StepsJob(
            job=self._job, variants=names, choices=list(choices), wait=True, rounds=_ROUNDS
        )
        self._next = msgspec.json.encode(asked)
        for name in names:
            try:
                self._state(self._next)
                yield events.CountersSampled(variant=name, sampled=self._variant(name))
            except NoCountersError as error:
                self.findings.append(replace(error.reason, variant=name))
                if error.reason.code != findings.counters_failed.code:
                    return

    def _state(self, line: bytes) -> StepsState:
        state = msgspec.json.decode(self._talk.ask(line), type=StepsState)
        failed = state.state == "failed"
        self._next = b"" if failed else b"0"  # after one that failed, the next comes by itself
        if failed:
            raise NoCountersError(findings.counters_failed(message=state.message))
        return state

    def _steps(self, count: int) -> tuple[int, int]:
        """When so many steps began, and what they took, in ns."""
        done = self._state(str(count).encode())
        return done.begin_ns, max(1, done.end_ns - done.begin_ns)

    def _variant(self, name: str) -> events.SampledSteps:
        """The counters of a variant that is built."""
        sampler = self._sampler
        rows: dict[str, list[float]] = {}
        per_step: dict[str, float] = {}
        step_ns = self._steps(3)[1] / 3
        count = min(_MOST_STEPS, ceil(_PASS_NS / step_ns))
        sampler.interval_ns = max(self._interval_ns, ceil(count * step_ns / _MOST_SAMPLES))
        for metrics in filter(None, sampler.sets):
            sampler.asked(do="start", metrics=metrics)
            begin_ns, took_ns = self._steps(count)
            samples = columns(metrics, sampler.asked(do="stop"), begin_ns, took_ns)
            if not samples[START]:
                labels = [row.label for row in ROWS.values() if row.metric in metrics]
                self.findings.append(findings.counters_without_samples(name, counters=labels))
                continue
            step_ns = took_ns / count
            shown = min(count, ceil(_FEWEST * sampler.interval_ns / step_ns))
            bins = min(_POINTS, ceil(shown * step_ns / sampler.interval_ns))
            low = (count - shown) // 2 * step_ns
            rows = rows_of(samples, low, low + shown * step_ns, bins) | rows
            for row_name, row in ROWS.items():
                if row.bytes and row.metric in metrics:
                    per_step[row_name] = row.bytes * sum(samples[row.metric]) / count
        if not rows:
            raise NoCountersError(findings.counters_failed(message="no pass has samples"))
        first = name == self._job.subject.variants[0].name
        return events.SampledSteps(
            interval_s=sampler.interval_ns * 1e-9,
            steps=count,
            step_s=step_ns * 1e-9,
            shown_s=shown * step_ns * 1e-9,
            rows={name: rows[name] for name in ROWS if name in rows},
            per_step=per_step,
            cost=self._cost(count) if first else None,
        )

    def _cost(self, count: int) -> Estimate:
        """What sampling adds to the same steps, by pairs in which either is first in turn."""
        took: tuple[list[float], list[float]] = [], []
        for pair in range(_PAIRS):
            for on in (pair % 2, 1 - pair % 2):
                if on:
                    self._sampler.asked(do="start", metrics=self._sampler.sets[0])
                took[on].append(self._steps(count)[1])
                if on:
                    self._sampler.asked(do="stop", decode=False)
        ratio = median_estimate(log_ratios(took[1], took[0]))
        assert ratio is not None
        return replace(
            ratio, **{end: expm1(getattr(ratio, end)) for end in ("value", "low", "high")}
        )
