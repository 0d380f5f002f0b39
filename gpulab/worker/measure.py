"""The measurement: epochs that rebuild every variant, and in each one rounds in random order."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from time import perf_counter

from gpulab.model.compare import narrow, narrow_time
from gpulab.model.events import Noticed, OtherClock, Phases, Planned, StageStarted, Stopped
from gpulab.model.request import RunRequest
from gpulab.model.scenario import CONTROL
from gpulab.model.stats import FEWEST
from gpulab.worker import compiled
from gpulab.worker.build import Builder
from gpulab.worker.channel import Channel
from gpulab.worker.clock import Clock
from gpulab.worker.contender import Contender
from gpulab.worker.device import release
from gpulab.worker.device_clock import DeviceClock
from gpulab.worker.failure import out_of_memory
from gpulab.worker.ledger import Ledger
from gpulab.worker.plan import Plan, plan
from gpulab.worker.recorder import Recorder
from gpulab.worker.warden import Where

_SETTLE_S, _SETTLING_BLOCKS = 0.01, 3
_LOOK_EVERY = 10
_PHASES_S = 0.05

OnFailure = Callable[[str, str, BaseException], None]


class _BaselineLostError(Exception):
    """Nothing is left to compare with."""


class _TooMuchTogetherError(Exception):
    """Each variant fits into memory, all of them at once do not."""


class Measurement:
    """Runs the epochs of all contenders until they are narrow enough, or the time or the epochs are spent."""

    def __init__(
        self,
        request: RunRequest,
        contenders: list[Contender],
        builder: Builder,
        clock: Clock,
        other: Clock | None,
        channel: Channel,
        ledger: Ledger,
        where: Where,
        on_failure: OnFailure,
        marked: set[str],
    ) -> None:
        self._request, self._builder, self._clock, self._other = request, builder, clock, other
        self._by_other: dict[str, list[float]] = {}
        self._exposed: set[str] = set()
        self._marked = marked
        self._channel, self._where, self._on_failure = channel, where, on_failure
        first = contenders[0]
        control = Contender(CONTROL, first.variant, first.items, first.steps, first.step_s)
        self.contenders = [first, control, *contenders[1:]]
        self.alone = request.alone
        self._order = random.Random(request.seed + 2)
        self._torn: set[str] = set()
        self._recorder = Recorder(channel, ledger, {one.name: one.items for one in self.contenders})
        self._rounds_s = self._builds_s = 0.0
        self._dearest_s = 0.0

    def run(self) -> None:
        """Measure. The builds of the last epoch stay, for the re-check; `close` lets them go."""
        self._channel.emit(StageStarted(stage="measure"))
        self._where.at("measure")
        gc.collect()
        gc.freeze()  # what is loaded by now stays: collecting between epochs then costs little
        gc.disable()
        try:
            reason = self._epochs()
        except _BaselineLostError:
            reason = "failed"
        finally:
            gc.enable()
        self._recorder.ship()
        if self._other is not None:
            for name, times in self._by_other.items():
                exposed = name in self._exposed
                self._channel.emit(OtherClock(variant=name, clock=self._other.name, times_s=times, exposed=exposed))
        self._channel.emit(Stopped(reason=reason))

    def close(self) -> None:
        for contender in self.contenders:
            self._close(contender)

    def _epochs(self) -> str:
        planned: Plan | None = None
        while True:
            try:
                self._build_all()
            except _TooMuchTogetherError:
                self.alone = True
                self._let_go()
                self._channel.emit(Noticed(text="the variants do not fit into memory together: each ran alone"))
            if planned is None:
                planned = self._plan()
            rounds = self._alone_rounds if self.alone else self._interleaved_rounds
            rounds(planned)
            if not self.alone:
                for contender in list(self.contenders):
                    self._look_at_the_other_clock(contender)
                    self._look_at_phases(contender)
            self._recorder.end_epoch()
            if reason := self._why_stop(planned):
                return reason
            self._let_go()

    def _let_go(self) -> None:
        self.close()
        self._builder.free_padding()
        compiled.reset()
        release(self._builder.device)

    def _why_stop(self, planned: Plan) -> str | None:
        done = len(self._recorder.epochs)
        if self._request.stop_early and done >= planned.epochs and self._narrow(planned):
            return "width"
        spent = self._rounds_s >= self._request.time_s or self._builds_s >= self._request.time_s
        if spent and (done >= FEWEST or planned.dear):
            return "time"
        return "epochs" if done >= planned.most and self._request.stop_early else None

    def _narrow(self, planned: Plan) -> bool:
        names = {one.name for one in self.contenders}
        epochs = self._recorder.current()
        if self._request.functions and not all(narrow_time(epochs, name, dear=planned.dear) for name in names):
            return False  # their time is all there is to say of them
        return narrow(epochs, self._request.pairs(names), dear=planned.dear)

    def _plan(self) -> Plan:
        if self.alone:
            self._build_alone_once()
        planned = plan(
            time_s=self._request.time_s,
            round_s=sum((one.steps + 1) * one.step_s for one in self.contenders),
            dearest_build_s=self._dearest_s,
            builds_s=self._builds_s,
            alone=self.alone,
        )
        self._channel.emit(
            Planned(rounds=planned.rounds, epochs=planned.epochs, floor=planned.floor, dear=planned.dear)
        )
        return planned

    def _interleaved_rounds(self, planned: Plan) -> None:
        last = len(self._recorder.epochs) + 1 == planned.most
        for number in range(planned.rounds):
            order = list(self.contenders)
            self._order.shuffle(order)
            for contender in order:
                self._block(number, contender)
            self._recorder.pump()
            if not planned.dear or number < FEWEST or number % _LOOK_EVERY:
                continue
            # Pairs of one build are narrow by nature: width counts only once all builds are in.
            if self._rounds_s >= self._request.time_s or (last and self._request.stop_early and self._narrow(planned)):
                return

    def _look_at_the_other_clock(self, contender: Contender) -> None:
        """One block an epoch by the clock that the verdict does not take."""
        if self._other is None or contender.build is None or contender.name == CONTROL:
            return
        try:
            taken = self._other.block(contender.build, contender.steps).time_s
        except BaseException as error:
            self._drop(contender, "measure", error)
        else:
            self._by_other.setdefault(contender.name, []).append(taken)
            if isinstance(self._other, DeviceClock) and self._other.exposes(contender.build):
                self._exposed.add(contender.name)

    def _look_at_phases(self, contender: Contender) -> None:
        """One window an epoch with marks on, where the variant has any."""
        build = contender.build
        if build is None or contender.name not in self._marked:
            return
        steps = max(1, min(contender.steps, int(_PHASES_S / contender.step_s)))
        try:
            taken = self._builder.marks_of(build, steps)
        except Exception as error:  # it is only a look: what was measured stays
            self._marked.discard(contender.name)
            why = str(error).partition("\n")[0]
            self._channel.emit(Noticed(text=f"{contender.name}: its phases could not be looked at: {why}"))
        else:
            ran = taken.cpu_s if self._builder.device.type == "cpu" else {}
            self._channel.emit(Phases(variant=contender.name, steps=steps, seconds=taken.wall_s, ran=ran))

    def _alone_rounds(self, planned: Plan) -> None:
        order = list(self.contenders)
        self._order.shuffle(order)
        for contender in order:
            if self._build(contender):
                for number in range(planned.rounds):
                    self._block(number, contender)
                self._look_at_the_other_clock(contender)
                self._look_at_phases(contender)
                self._recorder.pump()
            self._close(contender)
            release(self._builder.device)

    def _block(self, number: int, contender: Contender) -> None:
        if contender.build is None:
            return
        self._where.at("measure", contender.variant.name)
        started = perf_counter()
        try:
            block = self._clock.block(contender.build, contender.steps)
        except BaseException as error:
            self._drop(contender, "measure", error)
        else:
            self._recorder.add(number, contender.name, block)
        self._rounds_s += perf_counter() - started

    def _build_all(self) -> None:
        if self.alone:
            return
        order = list(self.contenders)
        self._order.shuffle(order)
        for contender in order:
            self._build(contender)

    def _build_alone_once(self) -> None:
        for contender in list(self.contenders):
            self._build(contender)
            self._close(contender)
            release(self._builder.device)

    def _build(self, contender: Contender) -> bool:
        """Build at a fresh address, and step until what the first steps set up is in place."""
        self._where.at("build", contender.variant.name)
        self._builder.pad()
        stage = "build"
        try:
            contender.build = self._builder.build(contender.variant)
            stage = "measure"
            self._where.at(stage, contender.variant.name)
            first_s = self._builder.first_step(contender.build)
            took = contender.build.build_s + max(0.0, first_s - contender.step_s)
            for _ in range(_SETTLING_BLOCKS if contender.steps * contender.step_s < _SETTLE_S else 0):
                self._clock.block(contender.build, contender.steps)
        except BaseException as error:
            first = not self._recorder.epochs  # later ones have the same builds, and would mix two ways of pairing
            if self._request.grows and first and not self.alone and out_of_memory(error):
                error.__traceback__ = None  # its frames hold tensors
                raise _TooMuchTogetherError from None
            self._drop(contender, stage, error)
            return False
        self._builds_s += took
        self._dearest_s = max(self._dearest_s, took)
        self._channel.pump()
        return True

    def _close(self, contender: Contender) -> None:
        build, contender.build = contender.build, None
        if build is None:
            return
        self._where.at("teardown", contender.variant.name)
        try:
            build.close()
        except BaseException as error:
            if contender.variant.name not in self._torn:  # each epoch would say it again
                self._torn.add(contender.variant.name)
                self._on_failure(contender.variant.name, "teardown", error)

    def _drop(self, contender: Contender, stage: str, error: BaseException) -> None:
        """Take a contender out; without its baseline nothing is left to compare."""
        self._on_failure(contender.variant.name, stage, error)
        self._close(contender)
        baseline = self.contenders[0].variant
        self.contenders = [one for one in self.contenders if one is not contender]
        if contender.variant is baseline:
            raise _BaselineLostError
