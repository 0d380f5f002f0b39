"""The worker's run, from loading the file to its last event."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpulab.model.events import (
    Built,
    Noticed,
    Reported,
    VariantSkipped,
    WorkerDone,
    WorkerReady,
)
from gpulab.model.request import RunRequest
from gpulab.model.scenario import CONTROL
from gpulab.worker import compiled, tensors
from gpulab.worker import device as devices
from gpulab.worker.build import Build, Builder, RefusedError
from gpulab.worker.ceilings import Calibration
from gpulab.worker.channel import Channel
from gpulab.worker.check import Checker
from gpulab.worker.clocks import clocks
from gpulab.worker.contender import Contender, calibrate, warm_up
from gpulab.worker.counting import count
from gpulab.worker.device_clock import DeviceClock
from gpulab.worker.lab import WorkerLab
from gpulab.worker.ledger import Ledger
from gpulab.worker.load import load
from gpulab.worker.measure import Measurement
from gpulab.worker.report import Report
from gpulab.worker.soak import soak
from gpulab.worker.warden import Where

if TYPE_CHECKING:
    from gpulab.model.scenario import Variant


class Run:
    """One request, served. Everything the scenario can do wrong ends as an event."""

    def __init__(self, channel: Channel, request: RunRequest, ledger: Ledger, where: Where) -> None:
        self._channel, self._request, self._ledger, self._where = channel, request, ledger, where
        self._report = Report(channel, request, where)
        self._marked: set[str] = set()
        """Variants whose steps have marks."""
        self._declared: set[str] = set()
        """Types of the work that variants declare."""

    def serve(self) -> None:
        try:
            self._report.at("load")
            device, found = devices.find(self._request.device, self._request.threads)
            if self._request.grows and device.type == "cpu":
                devices.refuse_what_does_not_fit()
            self._channel.emit(WorkerReady(pid=os.getpid(), device=found, environment=devices.environment()))
            wait = self._report.wait = devices.waiter(device)
            self._calibration = Calibration(self._channel, device, found, wait)
            if self._request.ceilings == "all":
                self._report.at("ceilings")
                self._calibration.whole()
                return
            scenario = load(self._request)
            variants = [scenario.variants[info.name] for info in self._request.variants if info.missing is None]
        except BaseException as error:
            self._report.failed(None, self._where.stage, error)
            return
        self._lab = WorkerLab(device, found, self._where)
        self._builder = Builder(self._lab, dict(self._request.params), self._request.seed, wait)
        self._checker = Checker(self._builder)
        self._clock, self._other = clocks(self._request, device, found, wait)
        self._checked = _checked(variants)
        contenders = self._prepare(variants)
        if contenders:
            self._look_at_ceilings()
            self._measure(contenders)
            if device.type == "cpu":  # once more: a machine with other users drifts
                self._look_at_ceilings()
        for (variant, name), value in self._lab.reports.items():
            self._channel.emit(Reported(variant=variant, name=name, value=value))

    def _prepare(self, variants: list[Variant]) -> list[Contender]:
        """Check, calibrate and warm up each variant on a build of its own; none are left where the baseline fails."""
        contenders: list[Contender] = []
        for variant in variants:
            if self._report.too_large is not None:
                why = f"{self._report.too_large} did not fit into memory, and this one needs more"
                self._channel.emit(VariantSkipped(variant=variant.name, reason=why))
                continue
            contender = self._prepare_one(variant, contenders[0].items if contenders else None)
            if contender is not None:
                contenders.append(contender)
            elif not contenders and not self._request.functions:
                return []
            self._release()
        return contenders

    def _prepare_one(self, variant: Variant, baseline_items: float | None) -> Contender | None:
        build: Build | None = None
        frames = compiled.frames()
        try:
            self._report.at("build", variant.name)
            build = self._builder.build(variant)
            self._report.at("check", variant.name)
            self._check(variant, build, baseline_items)
            self._report.at("calibrate", variant.name)
            contender = calibrate(self._clock, variant, build)
            self._report.at("warm-up", variant.name)
            warm_up(self._clock, self._channel, contender, build)
            self._cross_check(contender, build)
            self._count(variant.name, build, known=compiled.frames() == frames)
            if variant.name in self._checked:
                self._checker.still(variant.name, build)
        except BaseException as error:
            self._report.failed(variant.name, self._where.stage, error)
            return None
        finally:
            if build is not None:
                self._close(variant, build)
        return contender

    def _cross_check(self, contender: Contender, build: Build) -> None:
        """The device clock against the host's, once for each variant: work that its events miss must not look fast."""
        clock = next((one for one in (self._clock, self._other) if isinstance(one, DeviceClock)), None)
        if clock is None:
            return
        clock.block(build, contender.steps)
        exposed = clock.exposes(build)
        if exposed:
            why = "it waits for the device, or launches more than a queue holds"
            self._channel.emit(Noticed(text=f"{contender.name}: gaps between launches are in its device time: {why}"))
        if clock.flush or exposed:
            return
        device_s, host_s, queueing_s = clock.crossed(build, contender.steps)
        # A device that starts late, behind a long queueing, still ends within the sum of the two.
        if host_s > 1.1 * (device_s + queueing_s) + 50e-6:
            text = (
                f"{host_s:.3g} s on the host's clock, {device_s:.3g} s on the device's: join side streams in the step"
            )
            self._channel.emit(Noticed(text=f"{contender.name}: {text}"))

    def _count(self, name: str, build: Build, *, known: bool) -> None:
        """Look into one untimed step of work that is declared, if that is `known` to torch."""
        if self._request.ceilings == "none" or not (build.work.flops or build.work.bytes):
            return
        self._report.at("count", name)
        self._declared.add(build.work.dtype or "fp32")
        if known and (found := count(name, build)) is not None:
            self._channel.emit(found)

    def _look_at_ceilings(self) -> None:
        on_gpu = self._lab.device.type == "cuda"  # all of its ceilings take half a minute, and they are kept
        if not self._declared or (on_gpu and (self._where.known or self._request.quick)):
            return
        self._report.at("ceilings")
        try:
            self._calibration.beside_a_run(self._declared)
        except Exception as error:  # the run does not hang on them, as long as the device lives
            self._channel.emit(Noticed(text=f"the ceilings could not be measured: {error}"))
            self._report.device_must_live("ceilings")

    def _close(self, variant: Variant, build: Build) -> None:
        self._where.at("teardown", variant.name)
        try:
            build.close()
        except BaseException as error:
            self._report.failed(variant.name, "teardown", error)

    def _release(self) -> None:
        compiled.reset()
        devices.release(self._lab.device)

    def _check(self, variant: Variant, build: Build, baseline_items: float | None) -> None:
        work = build.work
        inputs = tensors.live_leaves("inputs", work.inputs) if variant.name in self._checked else []
        saved = tensors.copies(inputs)
        marks = self._lab.marks
        marks.used = False
        first_step_s = self._builder.first_step(build)
        if marks.used:
            self._marked.add(variant.name)
        compiled.strict()
        self._channel.emit(
            Built(
                variant=variant.name,
                build_s=build.build_s,
                first_step_s=first_step_s,
                items=work.items,
                bytes=work.bytes,
                flops=work.flops,
                dtype=work.dtype,
            )
        )
        if variant.against is not None:
            self._same_amount(build, baseline_items)
        if variant.name not in self._checked:
            return
        self._channel.emit(self._checker.before(variant.name, build, inputs, saved))
        for text in self._checker.notices:
            self._channel.emit(Noticed(text=text))
        self._checker.notices.clear()

    def _same_amount(self, build: Build, baseline_items: float | None) -> None:
        items = build.work.items
        if baseline_items is not None and self._request.per == "step" and items != baseline_items:
            raise RefusedError(
                f"it does {items:g} items a step and the baseline {baseline_items:g}: "
                "do equal work, or compare per item with Scenario(per='item') and name the part to check as output="
            )

    def _measure(self, contenders: list[Contender]) -> None:
        measurement = Measurement(
            self._request,
            contenders,
            self._builder,
            self._clock,
            self._other,
            self._channel,
            self._ledger,
            self._where,
            self._report.failed,
            self._marked,
        )
        measurement.run()
        if self._request.telemetry != "off":
            for contender in measurement.contenders:
                if contender.name != CONTROL:
                    self._soak(contender, alone=measurement.alone)
        for contender in measurement.contenders:
            if contender.name in self._checked:
                self._check_again(contender, alone=measurement.alone)
        measurement.close()

    def _soak(self, contender: Contender, *, alone: bool) -> None:
        """Run one variant by itself for long enough that counters at a few hertz can be told to be its own."""
        variant = contender.variant
        self._report.at("soak", variant.name)
        try:
            if contender.build is None:
                contender.build = self._builder.build(variant)
                self._builder.first_step(contender.build)
            wall = self._clock if self._other is None or self._clock.name == "wall" else self._other
            self._channel.emit(soak(wall, self._channel, contender, self._request.time_s))
        except BaseException as error:
            self._report.failed(variant.name, "soak", error)
        if alone and contender.build is not None:
            self._close(variant, contender.build)
            contender.build = None
            self._release()

    def _check_again(self, contender: Contender, *, alone: bool) -> None:
        variant = contender.variant
        self._report.at("re-check", variant.name)

        def rebuild() -> Build:
            return self._builder.build(variant)

        try:
            if contender.build is None:  # it ran alone, and is gone
                contender.build = rebuild()
            self._channel.emit(self._checker.after(variant.name, contender.build, rebuild))
        except BaseException as error:
            self._report.failed(variant.name, "re-check", error)
        if alone and contender.build is not None:
            self._close(variant, contender.build)
            contender.build = None
            self._release()


def _checked(variants: list[Variant]) -> set[str]:
    """The variants whose output is compared: none without the baseline's, nor those that are there for scale alone."""
    if not variants or variants[0].unchecked is not None:
        return set()
    return {one.name for one in variants if one.unchecked is None and one.against is not None}


def serve(channel: Channel, request: RunRequest, ledger: Ledger, where: Where) -> None:
    """Serve the request; returns when the last event has left."""
    if request.profiling:
        from gpulab.worker import profile

        profile.serve(channel, request, where)
    else:
        Run(channel, request, ledger, where).serve()
        compiled.end()
    where.at("end")
    channel.emit(WorkerDone(sent=channel.sent))
    channel.flush()
