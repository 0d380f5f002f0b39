"""Samples counters after the measurement: the steps run in one process, the sampler is another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gpulab.core.counted_steps import COMMAND, State, StepsJob, StepsState
from gpulab.core.events import Event
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, TimeFunctions
from gpulab.core.payloads import Choice
from gpulab.features.counters_in_time import findings
from gpulab.features.counters_in_time.environment import dcgm_process
from gpulab.features.counters_in_time.events import CountersEnded, CountersSampled
from gpulab.features.counters_in_time.rows import ROWS, Samples
from gpulab.features.counters_in_time.sampling import FailedError, NoCountersError, Sampler
from gpulab.features.counters_in_time.talking import CancelledError, NoAnswerError, Talk
from gpulab.session.worker_process import worker_environment

_SAMPLED_S = 0.01
"""How long the steps of one pass take, in all."""
_MOST_STEPS, _MOST_SAMPLES = 10_000, 5_000
"""A decode of 100,000 samples fails."""
_PAIRS = 8
"""The fewest that carry an interval."""
_ROUNDS = 64
_READY_S, _STEPS_S = 300.0, 60.0
_BELIEVED = 0.1
"""How far the count of a copy may be from its size."""


def sample_counters(
    job: Measure | TimeFunctions, choices: Sequence[Choice], interval_s: float, cancelled: int
) -> Iterator[Event]:
    """Events of the counters over each variant's steps, and at last why there are no more. Nothing
    after `cancelled` can be read.
    """
    counting = _Counting(job, choices, interval_s, cancelled)
    try:
        yield from counting.events()
    except CancelledError:
        return
    except (NoCountersError, NoAnswerError) as error:
        counting.findings.append(error.reason)
    except (FailedError, OSError) as error:
        counting.findings.append(findings.counters_failed(message=str(error)))
    finally:
        counting.close()
    yield counting.ended()


class _VariantFailedError(FailedError):
    """Its steps failed: the next is built without being asked for."""


class _Counting:
    def __init__(
        self,
        job: Measure | TimeFunctions,
        choices: Sequence[Choice],
        interval_s: float,
        cancelled: int,
    ) -> None:
        self._job, self._choices, self._cancelled = job, choices, cancelled
        self._interval_ns = round(interval_s * 1e9)
        self._sampler: Sampler | None = None
        self._steps: Talk | None = None
        self._ratios: dict[str, float] = {}
        self.findings: list[Finding] = []

    def events(self) -> Iterator[Event]:
        self._sampler = sampler = Sampler(self._job.device, self._interval_ns, self._cancelled)
        if process := dcgm_process():
            self.findings.append(findings.counters_beside_dcgm(process=process))
        if sampler.missing:
            self.findings.append(findings.counters_missing(counters=sampler.missing))
        self._ratios = sampler.ratios(self._interval_ns)
        for name, ratio in self._ratios.items():
            if abs(ratio - 1) > _BELIEVED:
                label = ROWS[name].label
                self.findings.append(findings.counter_deviates(counter=label, ratio=ratio))
        infos = self._job.subject.variants
        asked = StepsJob(
            job=self._job,
            variants=[info.name for info in infos if info.missing is None],
            choices=list(self._choices),
            wait=True,
            rounds=_ROUNDS,
        )
        environment = worker_environment(self._job)
        self._steps = Talk("the steps process", COMMAND, self._cancelled, environment)
        line: bytes | None = msgspec.json.encode(asked)
        for number, name in enumerate(asked.variants):
            try:
                yield self._variant(sampler, self._steps, line, with_cost=number == 0)
                line = b"0"
            except FailedError as error:
                self.findings.append(findings.counters_failed(name, message=str(error)))
                line = None if isinstance(error, _VariantFailedError) else b"0"

    def ended(self) -> CountersEnded:
        return CountersEnded(
            package=self._sampler.package if self._sampler else "",
            ratios=self._ratios,
            findings=self.findings,
        )

    def close(self) -> None:
        for process in (self._sampler, self._steps):
            if process is not None:
                process.close()

    def _variant(
        self, sampler: Sampler, steps: Talk, line: bytes | None, *, with_cost: bool
    ) -> CountersSampled:
        """Build a variant, where a line is to ask for it, and sample its steps."""
        ready = steps.answer(_READY_S) if line is None else steps.ask(line, _READY_S)
        name = _state(ready).variant
        timed = _round(steps, 3)
        step_s = _seconds(timed) / timed.steps
        count = min(_MOST_STEPS, max(1, round(_SAMPLED_S / step_s)))
        longest_ns = round(count * step_s * 1e9 / _MOST_SAMPLES)
        interval_ns = max(self._interval_ns, longest_ns)
        passes: list[Samples] = []
        for metrics in filter(None, sampler.sets):
            sampler.start(metrics, interval_ns)
            done = _round(steps, count)
            samples = Samples(metrics, sampler.stop(), done.begin_ns, done.end_ns, done.steps)
            if samples.during:
                passes.append(samples)
            else:
                labels = [row.label for row in ROWS.values() if row.metric in metrics]
                self.findings.append(findings.counters_without_samples(name, counters=labels))
        if not passes:
            raise FailedError("no pass has samples")
        shown = [samples.rows() for samples in passes]
        rows = {row: values for _, each in reversed(shown) for row, values in each.items()}
        off_s, on_s = self._cost(sampler, steps, count) if with_cost else ([], [])
        return CountersSampled(
            variant=name,
            interval_s=interval_ns * 1e-9,
            steps=count,
            step_s=_seconds(done) / done.steps,
            shown_s=shown[0][0],
            rows={row: [_short(value) for value in rows[row]] for row in ROWS if row in rows},
            per_step=passes[0].per_step(),
            off_s=off_s,
            on_s=on_s,
        )

    def _cost(self, sampler: Sampler, steps: Talk, count: int) -> tuple[list[float], list[float]]:
        """Seconds of the same steps in pairs, each first in every other one."""
        off_s: list[float] = []
        on_s: list[float] = []
        for pair in range(_PAIRS):
            for on in (pair % 2 == 0, pair % 2 == 1):
                if not on:
                    off_s.append(_seconds(_round(steps, count)))
                    continue
                sampler.start(sampler.sets[0], self._interval_ns)
                on_s.append(_seconds(_round(steps, count)))
                sampler.stop_without()
        return off_s, on_s


def _round(steps: Talk, count: int) -> StepsState:
    return _state(steps.ask(str(count).encode(), _STEPS_S))


def _state(line: bytes) -> StepsState:
    state = msgspec.json.decode(line, type=StepsState)
    if state.state == State.FAILED:
        raise _VariantFailedError(state.message)
    return state


def _seconds(done: StepsState) -> float:
    return max(1, done.end_ns - done.begin_ns) * 1e-9


def _short(value: float) -> float:
    """In four digits, as nothing that is drawn has more."""
    return float(f"{value:.4g}")
