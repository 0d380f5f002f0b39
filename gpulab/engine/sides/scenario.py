"""The variants of a scenario as steps of one side, built, timed and read as in every other run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from gpulab.core.jobs import Measure
from gpulab.core.statuses import Stage
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.build.lab import RankOfLab, WorkerLab
from gpulab.engine.build.load import load
from gpulab.engine.measure.device_clock import clocks_for
from gpulab.engine.measure.outputs import read
from gpulab.engine.processes.channel import Channel, WorkerPosition
from gpulab.engine.processes.device import environment, open_device, waiter
from gpulab.engine.processes.reporting import Reporter
from gpulab.features import modules


class ScenarioSteps:
    """Every variant that this machine can run, built once."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        job = msgspec.json.decode(task["job"], type=Measure)
        device, info = open_device(job.device, job.threads)
        wait = waiter(device)
        scenario = load(job.subject)
        names = [info.name for info in job.subject.variants if info.missing is None]
        position = WorkerPosition(tuple(names))
        reporter = Reporter(Channel(os.open(os.devnull, os.O_WRONLY)), job, position)
        lab = WorkerLab(device, info, position, RankOfLab())
        self._builder = Builder(lab, dict(job.subject.params), task["seed"], wait)
        self._clock, _ = clocks_for(job, device, info, wait)
        for feature in modules("lab"):
            feature.add_to_lab(job, self._builder, reporter, self._clock, (), first=True)
        self._builds: dict[str, Build] = {}
        for name in names:
            position.move(Stage.BUILD, name)
            self._builds[name] = self._builder.build(scenario.variants[name])
        self.names = names
        self.number = "float32"  # numbers are tensors by then
        self.items = {name: build.work.items for name, build in self._builds.items()}
        self.device = msgspec.to_builtins(info)
        self.versions = {name: value for name, value in environment().items() if value}

    def first(self, name: str) -> object:
        """The first step, seeded; a copy of its output."""
        build = self._builds[name]
        returned, _ = self._builder.step(build)
        build.adopt()
        return [tensor.detach().to("cpu", copy=True) for tensor in read(build, returned)]

    def block_s(self, name: str, steps: int, lead_in: int) -> float:
        block = self._clock.block(self._builds[name], steps, lead_in=lead_in)
        self._clock.forget()
        return block.time_s

    def close(self) -> None:
        """Run what follows the `yield` of each build."""
        for build in self._builds.values():
            build.close()
