"""The worker's run, from loading the file to its last event."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpulab.model.events import (
    Built,
    Checked,
    Device,
    Noticed,
    Reported,
    RunRequest,
    StageStarted,
    VariantRefused,
    WorkerDone,
    WorkerReady,
)
from gpulab.worker import compiled
from gpulab.worker import device as devices
from gpulab.worker.build import Build, Builder, RefusedError
from gpulab.worker.channel import Channel
from gpulab.worker.check import Checker, WrongOutputError
from gpulab.worker.clock import Clock
from gpulab.worker.failure import failure
from gpulab.worker.ledger import Ledger
from gpulab.worker.load import load
from gpulab.worker.measure import Contender, Measurement, calibrate, warm_up
from gpulab.worker.warden import Where

if TYPE_CHECKING:
    import torch

    from gpulab.model.scenario import Variant


class WorkerLab:
    """The `Lab` that variants are given."""

    def __init__(self, device: torch.device, found: Device) -> None:
        self.device = device
        self.l2_bytes = found.l2_bytes
        self.memory_bytes = found.memory_bytes
        self.building: str | None = None
        self.reports: dict[tuple[str | None, str], float] = {}

    def report(self, name: str, value: float) -> None:
        self.reports[self.building, name] = float(value)


class Run:
    """One request, served. Everything the scenario can do wrong ends as an event."""

    def __init__(self, channel: Channel, request: RunRequest, ledger: Ledger, where: Where) -> None:
        self._channel, self._request, self._ledger, self._where = channel, request, ledger, where

    def serve(self) -> None:
        try:
            self._at("load")
            device, found = devices.find(self._request.device, self._request.threads)
            self._channel.emit(WorkerReady(pid=os.getpid(), device=found, environment=devices.environment()))
            scenario = load(self._request)
            variants = [scenario.variants[info.name] for info in self._request.variants if info.missing is None]
        except BaseException as error:
            self._failed(None, "load", error)
            return
        self._lab = WorkerLab(device, found)
        self._wait = devices.waiter(device)
        self._builder = Builder(self._lab, dict(self._request.params), self._request.seed, self._wait)
        self._checker = Checker(self._builder, self._wait)
        self._clock = Clock(self._wait)
        contenders = self._prepare(variants)
        if contenders:
            self._measure(contenders)
        for (variant, name), value in self._lab.reports.items():
            self._channel.emit(Reported(variant=variant, name=name, value=value))

    def _prepare(self, variants: list[Variant]) -> list[Contender]:
        """Check, calibrate and warm up each variant on a build of its own; none are left where the baseline fails."""
        contenders: list[Contender] = []
        baseline_items: float | None = None
        for variant in variants:
            contender = self._prepare_one(variant, baseline_items)
            if contender is None and baseline_items is None:
                return []
            if contender is not None:
                baseline_items = baseline_items or contender.items
                contenders.append(contender)
        return contenders

    def _prepare_one(self, variant: Variant, baseline_items: float | None) -> Contender | None:
        self._lab.building = variant.name
        stage, build, contender = "build", None, None
        try:
            self._at(stage, variant.name)
            build = self._builder.build(variant)
            compiled.strict()
            stage = "check"
            self._at(stage, variant.name)
            self._built(variant, build)
            self._same_amount(build, baseline_items)
            self._check(variant, build)
            stage = "calibrate"
            self._at(stage, variant.name)
            contender = calibrate(self._clock, self._channel, variant, build)
            stage = "warm-up"
            self._at(stage, variant.name)
            warm_up(self._clock, self._channel, contender, build)
            if variant.unchecked is None:
                self._checker.still(variant.name, build)
            stage = "teardown"
            self._at(stage, variant.name)
            build.close()
        except BaseException as error:
            self._failed(variant.name, stage, error)
            return None
        finally:
            self._lab.building = None
            del build
        return contender

    def _built(self, variant: Variant, build: Build) -> None:
        work, first_step_s = build.work, self._checker.first_step(build)
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

    def _same_amount(self, build: Build, baseline_items: float | None) -> None:
        items = build.work.items
        if baseline_items is not None and self._request.per == "step" and items != baseline_items:
            raise RefusedError(
                f"it does {items:g} items a step and the baseline {baseline_items:g}: "
                "do equal work, or compare per item with Scenario(per='item')"
            )

    def _check(self, variant: Variant, build: Build) -> None:
        if variant.unchecked is not None:
            self._channel.emit(Checked(variant=variant.name, when="before", ok=True, reason=variant.unchecked))
            return
        self._channel.emit(self._checker.before(variant.name, build))
        for text in self._checker.notices:
            self._channel.emit(Noticed(text=text))
        self._checker.notices.clear()

    def _measure(self, contenders: list[Contender]) -> None:
        measurement = Measurement(
            self._request,
            contenders,
            self._builder,
            self._clock,
            self._channel,
            self._ledger,
            self._where,
            self._failed,
        )
        measurement.run()
        for contender in measurement.contenders:
            if contender.variant.unchecked is None and contender.name == contender.variant.name:
                self._check_again(contender)
        measurement.close()

    def _check_again(self, contender: Contender) -> None:
        variant = contender.variant
        self._at("re-check", variant.name)

        def rebuild() -> Build:
            return self._builder.build(variant)

        try:
            build = contender.build or rebuild()
            self._channel.emit(self._checker.after(variant.name, build, rebuild))
        except BaseException as error:
            self._failed(variant.name, "re-check", error)

    def _at(self, stage: str, variant: str | None = None) -> None:
        self._where.at(stage, variant)
        self._channel.emit(StageStarted(stage=stage, variant=variant))

    def _failed(self, variant: str | None, stage: str, error: BaseException) -> None:
        if isinstance(error, RefusedError) and variant is not None:
            self._channel.emit(VariantRefused(variant=variant, reason=str(error)))
        elif isinstance(error, WrongOutputError) and variant is not None:
            when = "after" if stage == "re-check" else "before"
            self._channel.emit(Checked(variant=variant, when=when, ok=False, error=error.error, reason=str(error)))
        else:
            self._channel.emit(failure(error, self._request.path, variant, stage))
        self._device_must_live(stage)

    def _device_must_live(self, stage: str) -> None:
        """A CUDA error sticks to its process: nothing measured after it can be believed."""
        wait = getattr(self, "_wait", None)
        if wait is None:
            return
        try:
            wait()
        except Exception as error:
            self._channel.emit(failure(error, self._request.path, None, stage))
            self._channel.flush()
            os._exit(1)


def serve(channel: Channel, request: RunRequest, ledger: Ledger, where: Where) -> None:
    """Serve the request; returns when the last event has left."""
    Run(channel, request, ledger, where).serve()
    where.at("end")
    channel.emit(WorkerDone())
    channel.flush()
