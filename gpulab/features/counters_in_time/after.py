"""Samples counters after the measurement: the steps run in one process, the sampler is another."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from math import ceil, expm1
from statistics import median
from time import monotonic
from typing import Any

import msgspec
from msgspec.structs import replace

from gpulab.core.counted_steps import COMMAND, StepsJob, StepsState
from gpulab.core.estimate import Estimate
from gpulab.core.events import Event, StageStarted
from gpulab.core.findings import Finding
from gpulab.core.machine import COUNTERS_FIX
from gpulab.core.statuses import Stage
from gpulab.features.counters_in_time import environment, events, findings, rows
from gpulab.proc.spawn import DEVNULL, PIPE, TimeoutExpired, spawn
from gpulab.proc.tree import kill_group
from gpulab.report.sentences import sentence
from gpulab.session.worker_process import worker_environment
from gpulab.stats.statistics import log_ratios, median_estimate

_ANSWER_S = 300.0
_PASS_NS = 1e7
"""How long the steps of one pass take, in all."""
_MOST_STEPS, _MOST_SAMPLES, _POINTS, _FEWEST = 10_000, 5_000, 200, 20
"""A decode of 100,000 samples fails. A row keeps 200 values, and shows steps of 20 samples."""
_PASSES, _PAIRS, _PAIRS_S = 3, 8, 2.0
"""Passes of which the median is shown. Pairs with and without sampling, of one variant: the fewest
that carry an interval, as far as they fit.
"""
_BELIEVED = 0.1
"""How far the count of a copy may be from its size."""
_ON_CPU = "no GPU: this run is on the CPU"
_MOST_ROUNDS = 64
"""More than all rounds of a variant."""


_Pass = tuple[int, rows.Columns]
"""What its steps took, in ns, and the samples of them."""


class NoCountersError(Exception):
    """There are none, or `counters_failed`: not for what was asked last."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.code)
        self.reason = reason


def sample_counters(asked: StepsJob, interval_s: float, cancelled: int) -> Iterator[Event]:
    """Events of the counters over the steps of these variants, and at last why there are no more.
    Nothing after `cancelled` can be read.
    """
    sampling = _Sampling(asked, round(interval_s * 1e9), cancelled)
    with ExitStack() as processes:
        try:
            yield from sampling.variants(processes)
        except NoCountersError as error:
            sampling.whole.findings.append(error.reason)
    if not select.select([cancelled], [], [], 0)[0]:
        yield events.CountersEnded(sampling=sampling.whole)


def probe(device: str = "cuda:0") -> tuple[str, Finding | None]:
    """What samples a device, in words, or why nothing does."""
    with ExitStack() as processes:
        try:
            sampler = Sampler(processes, device, 20_000)
            sampler.open()
        except NoCountersError as error:
            return sentence(error.reason), error.reason
    return f"cupti-python {sampler.package}", None


def _reason(error: str) -> Finding:
    """Why there is nothing, by what an error of the sampler says."""
    if "No module named" in error:
        return findings.counters_need_package(install=environment.install_line())
    if "PermissionError" in error or "INSUFFICIENT_PRIVILEGES" in error:
        return findings.counters_not_permitted(fix=COUNTERS_FIX)
    if "libcuda" in error or "no GPU" in error:
        return findings.counters_need_gpu(message=error)
    return findings.counters_failed(message=error)


class Talk:
    """A process that answers lines with lines. `stop` wakes whoever waits for an answer."""

    def __init__(
        self, processes: ExitStack, name: str, command: Sequence[str], stop: Sequence[int], env: Any
    ) -> None:
        self._name, self._stop, self._partial = name, stop, b""
        pipes: Any = {"stdin": PIPE, "stdout": PIPE, "stderr": DEVNULL}
        try:
            self._process = spawn(command, env=env, start_new_session=True, **pipes)
        except OSError as error:
            raise NoCountersError(findings.counters_failed(message=str(error))) from None
        processes.callback(self._close)

    def tell(self, said: Any) -> None:
        """Send a line of JSON; that nobody reads it is seen by the answer."""
        with suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(said) + b"\n")  # type: ignore[union-attr]

    def hear(self) -> Any:
        """What the next line says. NoCountersError."""
        output = self._process.stdout.fileno()  # type: ignore[union-attr]
        while b"\n" not in self._partial:
            ready, _, _ = select.select([output, *self._stop], [], [], _ANSWER_S)
            data = os.read(output, 1 << 18) if ready == [output] else b""
            if not data:
                end = self._close() if ready else "no answer"
                raise NoCountersError(findings.counters_ended(process=self._name, end=end))
            self._partial += data
        answer, _, self._partial = self._partial.partition(b"\n")
        return msgspec.json.decode(answer)

    def _close(self) -> str:
        """End it, and say how it ended; one that hangs in the driver is not waited for."""
        if self._process.returncode is None:
            kill_group(self._process.pid, signal.SIGKILL)
        with suppress(TimeoutExpired):
            self._process.wait(5.0)
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.close()  # type: ignore[union-attr]
        code = self._process.returncode or 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class Sampler(Talk):
    """The sampler of a device: its process starts at once. `sets`: what can be sampled in one pass
    each. NoCountersError.
    """

    def __init__(
        self, processes: ExitStack, device: str, interval_ns: int, stop: Sequence[int] = ()
    ) -> None:
        command = environment.sampler_command()
        number = None if device == "cpu" else int(device.rpartition(":")[2])
        if command is None:
            raise NoCountersError(_reason("No module named cupti" if device != "cpu" else _ON_CPU))
        super().__init__(processes, "the sampler", command, stop, None)
        self.interval_ns = interval_ns
        self.tell({"device": number})

    def open(self) -> None:
        """Wait until it has started, and ask it what it samples."""
        self.package = str(self._answer())
        sets = (self.asked(do="supported", metrics=each) for each in rows.SETS)
        self.sets = list(filter(None, sets))
        if not self.sets:
            raise NoCountersError(findings.counters_failed(message="this GPU samples none of them"))

    def asked(self, **asked: Any) -> Any:
        """The answer."""
        if "metrics" in asked:
            asked["interval_ns"] = self.interval_ns
        self.tell(asked)
        return self._answer()

    def _answer(self) -> Any:
        said = self.hear()
        if error := said.get("error"):
            raise NoCountersError(_reason(error))
        return said["answer"]

    def checked(self) -> tuple[dict[str, float], dict[str, float]]:
        """By row, what was counted of a copy of known size over that size; and bytes per second
        over the link while it was idle.
        """
        ratios, idle = {}, {}
        metrics = self.sets[0]
        copies = self.asked(do="check", metrics=metrics)
        for name, row in rows.ROWS.items():
            if not row.copied or row.metric not in metrics:
                continue
            at = 2 + metrics.index(row.metric)
            size, samples = copies[row.copied]
            ratios[name] = sum(sample[at] for sample in samples if sample[0]) / size
            if row.copied == "link":
                during = [sample for sample in copies["inside"][1] if sample[0]]
                took_ns = sum(end - start for start, end, *_ in during)
                idle[name] = sum(sample[at] for sample in during) / max(1, took_ns) * 1e9
        return ratios, idle


class _Sampling:
    def __init__(self, asked: StepsJob, interval_ns: int, cancelled: int) -> None:
        self._asked, self._interval_ns, self._stop = asked, interval_ns, [cancelled]
        self._waits = False
        self.whole = events.Sampling()

    def variants(self, processes: ExitStack) -> Iterator[Event]:
        """Sample one after the other."""
        for name in self._asked.variants:
            yield StageStarted(stage=Stage.COUNTERS, variant=name)
            if not self.whole.package:
                self._begin(processes)
            if self._waits:
                self._steps.tell(0)
            try:
                self._state()
                if (sampled := self._variant(name)).rows:
                    yield events.CountersSampled(variant=name, sampled=sampled)
            except NoCountersError as error:
                self.whole.findings.append(replace(error.reason, variant=name))
                if error.reason.code == findings.counters_ended.code:
                    return

    def _begin(self, processes: ExitStack) -> None:
        """Start both processes, and hold counts against copies while the other one imports torch:
        it uses the device once it has its job.
        """
        job, said = self._asked.job, self.whole.findings
        sampler = self._sampler = Sampler(processes, job.device, self._interval_ns, self._stop)
        variables, name = worker_environment(job), "the process of the steps"
        self._steps = Talk(processes, name, COMMAND, self._stop, variables)
        sampler.open()
        if process := environment.dcgm_process():
            said.append(findings.counters_beside_dcgm(process=process))
        ratios, idle = sampler.checked()
        self.whole = replace(self.whole, package=sampler.package, ratios=ratios, idle=idle)
        for row, ratio in ratios.items():
            if abs(ratio - 1) > _BELIEVED:
                said.append(findings.counter_deviates(counter=rows.ROWS[row].label, ratio=ratio))
        self._steps.tell(replace(self._asked, wait=True, rounds=_MOST_ROUNDS))

    def _state(self) -> StepsState:
        state = msgspec.convert(self._steps.hear(), StepsState)
        self._waits = state.state != "failed"  # after one that failed, the next comes by itself
        if state.state == "failed":
            raise NoCountersError(findings.counters_failed(message=state.message))
        return state

    def _step(self, count: int) -> tuple[int, int]:
        """When so many steps began, and what they took, in ns."""
        self._steps.tell(count)
        done = self._state()
        return done.begin_ns, max(1, done.end_ns - done.begin_ns)

    def _pass(self, metrics: list[str], count: int, *, decode: bool = True) -> _Pass:
        self._sampler.asked(do="start", metrics=metrics)
        begin_ns, took_ns = self._step(count)
        samples = self._sampler.asked(do="stop", decode=decode)
        return took_ns, rows.columns(metrics, samples, begin_ns, took_ns)

    def _pairs(self, count: int, most: int) -> tuple[list[_Pass], Estimate]:
        """Passes of so many steps, each beside the same steps without sampling, either first in
        turn; and what it adds to them, relative.
        """
        passes, plain_ns, until = [], [], monotonic() + _PAIRS_S
        for pair in range(most):
            if pair >= _PASSES and monotonic() > until:
                break
            for sampled in (pair % 2, 1 - pair % 2):
                if sampled:
                    decode = pair < _PASSES
                    passes.append(self._pass(self._sampler.sets[0], count, decode=decode))
                else:
                    plain_ns.append(self._step(count)[1])
        added = median_estimate(log_ratios([took_ns for took_ns, _ in passes], plain_ns))
        assert added is not None
        return passes, added.moved(expm1)

    def _variant(self, name: str) -> events.SampledSteps:
        """The counters of a variant that is built."""
        sampler = self._sampler
        step_ns = self._step(3)[1] / 3
        count = min(_MOST_STEPS, ceil(_PASS_NS / step_ns))
        sampler.interval_ns = max(self._interval_ns, ceil(count * step_ns / _MOST_SAMPLES))
        first = name == self._asked.variants[0]
        passes, cost = self._pairs(count, _PAIRS if first else _PASSES)
        usual_ns = median(took_ns for took_ns, _ in passes)
        passes.sort(key=lambda each: (not each[1][rows.START], abs(each[0] - usual_ns)))
        step_ns = passes[0][0] / count
        shown = min(count, ceil(_FEWEST * sampler.interval_ns / step_ns))
        bins = min(_POINTS, ceil(shown * step_ns / sampler.interval_ns))
        drawn: dict[str, list[float]] = {}
        per_step: dict[str, float] = {}
        others = [self._pass(metrics, count) for metrics in sampler.sets[1:]]
        for took_ns, samples in (passes[0], *others):
            if samples[rows.START]:
                low = (count - shown) // 2 * took_ns / count
                drawn = rows.rows_of(samples, low, low + shown * took_ns / count, bins) | drawn
                per_step = rows.bytes_of(samples, count) | per_step
        labels = [row.label for key, row in rows.ROWS.items() if key not in drawn]
        missing = findings.counters_missing(counters=labels)
        if labels and missing not in self.whole.findings:
            self.whole.findings.append(missing)
        return events.SampledSteps(
            interval_s=sampler.interval_ns * 1e-9,
            steps=count,
            step_s=step_ns * 1e-9,
            shown_s=shown * step_ns * 1e-9,
            rows={name: drawn[name] for name in rows.ROWS if name in drawn},
            per_step=per_step,
            cost=cost if first else None,
        )
