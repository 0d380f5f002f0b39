"""A fleet folded: each GPU over the median of its model by what limits, which are outliers, and
why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import exp, log
from statistics import median

from msgspec.structs import replace

from gpulab.core.findings import Finding
from gpulab.features.fleet.figures import (
    SIGMA,
    Measured,
    Unit,
    Value,
    figures_of,
    fleet_interval,
    mad,
    spreads_of,
)
from gpulab.features.fleet.findings import (
    bad_link,
    gpu_not_measured,
    low_clock,
    low_memory_clock,
    noisy_neighbour,
    other_versions,
    slow_for_unknown_reasons,
    slow_hbm,
)
from gpulab.features.fleet.reading import FileFacts
from gpulab.features.fleet.report import Figure, GpuReport, Ratio, Resource
from gpulab.features.telemetry.fields import reason_names

FEWEST_GPUS = 4
"""Of a model: of three the median is one of two that agree."""
_LEAST = 0.03
"""A GPU that is less slower is as its maker sells it."""
_DEVIATIONS = 5.0
_LEAST_SPREAD, _TIMES_SPREAD = 0.02, 3.0
_SHARED = 0.1
"""Of the readings with another process on the GPU."""
_EXPLAINS = 0.5
_VERSIONS = ("driver", "torch", "gpulab")


class Fleet:
    """The facts of all files of one fleet."""

    def __init__(self, files: Sequence[FileFacts]) -> None:
        self._by_unit: dict[Unit, list[FileFacts]] = {}
        for facts in files:
            self._by_unit.setdefault(facts.unit, []).append(facts)
        usable = [facts for facts in files if facts.device is not None]
        measured = [figure for figure in figures_of(usable) if len(figure.values) >= FEWEST_GPUS]
        self._measured = measured
        self._spreads = self._relative_spreads(usable)
        self._clocks = self._relative_clocks()
        self._memory_clocks = self._clocks_of_telemetry(lambda facts: facts.memory_mhz)
        self._ratios = self._all_ratios()
        self._usual = self._usual_versions()

    @property
    def hosts(self) -> int:
        return len({host for host, _ in self._by_unit})

    @property
    def figures(self) -> list[Figure]:
        """Medians and deviations, as they are reported."""
        return [_reported(figure) for figure in self._measured]

    @property
    def gpus(self) -> list[GpuReport]:
        """Outliers first, then the slowest first."""
        reports = [self._gpu(unit) for unit in self._by_unit]
        return sorted(reports, key=lambda gpu: (not gpu.outlier, _lowest(gpu), gpu.host, gpu.uuid))

    def _all_ratios(self) -> dict[Unit, dict[Resource, Ratio]]:
        """Of each GPU, by what limits: the median over its figures, with the limit of its model."""
        parts: dict[tuple[str, Resource], dict[Unit, list[Value]]] = {}
        for figure in self._measured:
            fleet = fleet_interval([value.speed for value in figure.values.values()])
            group = parts.setdefault((figure.key[0], figure.resource), {})
            for unit, value in figure.values.items():
                low = high = None
                if value.low is not None and value.high is not None:
                    low = value.low / fleet.high
                    high = value.high / fleet.low
                over_median = Value(value.speed / fleet.median, low, high)
                group.setdefault(unit, []).append(over_median)
        ratios: dict[Unit, dict[Resource, Ratio]] = {}
        for (_, resource), group in parts.items():
            for unit, ratio in _with_limits(group).items():
                ratios.setdefault(unit, {})[resource] = ratio
        return ratios

    def _relative_spreads(
        self, files: Sequence[FileFacts]
    ) -> dict[Unit, tuple[float, float, float]]:
        """(spread, that of the fleet, limit of their quotient) of each GPU: medians over its
        scenarios.
        """
        own: dict[str, dict[Unit, list[tuple[float, float]]]] = {}
        for key, known in spreads_of(files).items():
            usual = median(known.values())
            if len(known) < FEWEST_GPUS or not usual:
                continue
            group = own.setdefault(key[0], {})
            for unit, spread in known.items():
                if spread:
                    group.setdefault(unit, []).append((spread, usual))
        spreads = {}
        for group in own.values():
            logs = {
                unit: median(log(spread / usual) for spread, usual in pairs)
                for unit, pairs in group.items()
            }
            limit = max(log(_TIMES_SPREAD), _DEVIATIONS * SIGMA * mad(list(logs.values())))
            for unit, pairs in group.items():
                spread = median(spread for spread, _ in pairs)
                spreads[unit] = (spread, spread / exp(logs[unit]), exp(limit))
        return spreads

    def _relative_clocks(self) -> dict[Unit, tuple[float, float]]:
        """(MHz, MHz over the median) of the SMs on each GPU, where arithmetic was the limit; else
        wherever it is known.
        """
        of_compute: dict[Unit, list[tuple[float, float]]] = {}
        of_all: dict[Unit, list[tuple[float, float]]] = {}
        for figure in self._measured:
            clock_of = {unit: value.mhz for unit, value in figure.values.items() if value.mhz}
            if len(clock_of) < FEWEST_GPUS:
                continue
            usual = median(clock_of.values())
            for unit, mhz in clock_of.items():
                of_all.setdefault(unit, []).append((mhz, mhz / usual))
                if figure.resource == Resource.COMPUTE:
                    of_compute.setdefault(unit, []).append((mhz, mhz / usual))
        clocks = {}
        for unit, pairs in of_all.items():
            pairs = of_compute.get(unit, pairs)
            clocks[unit] = (median(mhz for mhz, _ in pairs), median(share for _, share in pairs))
        return self._clocks_of_telemetry(lambda facts: facts.mhz) | clocks

    def _clocks_of_telemetry(
        self, clock_of: Callable[[FileFacts], float | None]
    ) -> dict[Unit, tuple[float, float]]:
        by_model: dict[str, dict[Unit, float]] = {}
        for unit, files in self._by_unit.items():
            clocks_of_unit = [clock for clock in map(clock_of, files) if clock]
            if clocks_of_unit:
                by_model.setdefault(self._model(unit), {})[unit] = median(clocks_of_unit)
        clocks = {}
        for clocks_of_model in by_model.values():
            usual = median(clocks_of_model.values())
            for unit, mhz in clocks_of_model.items():
                clocks[unit] = (mhz, mhz / usual)
        return clocks

    def _usual_versions(self) -> dict[tuple[str, str], str]:
        """By model and name of what has a version, the version of most GPUs."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for unit, files in self._by_unit.items():
            for name in _VERSIONS:
                version = files[-1].environment.get(name)
                if version:
                    counts.setdefault((self._model(unit), name), Counter())[version] += 1
        return {key: counter.most_common(1)[0][0] for key, counter in counts.items()}

    def _model(self, unit: Unit) -> str:
        devices = [facts.device for facts in self._by_unit[unit] if facts.device]
        return devices[-1].name if devices else ""

    def _gpu(self, unit: Unit) -> GpuReport:
        files = self._by_unit[unit]
        ratios = self._ratios.get(unit, {})
        spread, usual_spread, most = self._spreads.get(unit, (None, None, None))
        relative = None
        noisy = False
        if spread is not None and usual_spread and most is not None:
            relative = spread / usual_spread
            noisy = spread >= _LEAST_SPREAD and relative > most
        low = [resource for resource, ratio in ratios.items() if _is_low(ratio)]
        slowest = min(low, key=lambda resource: ratios[resource].ratio, default=None)
        report = GpuReport(
            host=unit[0],
            uuid=unit[1],
            model=self._model(unit),
            files=[facts.path.name for facts in files],
            ratios=ratios,
            spread=spread,
            relative_spread=relative,
            sm_mhz=self._clocks.get(unit, (None, None))[0],
            outlier=bool(low) or noisy,
            slowest=slowest,
        )
        if low or noisy:
            return replace(report, cause=self._cause(unit, low, noisy, ratios))
        if not any(facts.variants or facts.ceilings for facts in files):
            message = f"the run {files[-1].failure or files[-1].outcome or 'has no end'}"
            return replace(report, outlier=True, cause=gpu_not_measured(message=message))
        return report

    def _cause(
        self,
        unit: Unit,
        low: Sequence[Resource],
        noisy: bool,
        ratios: Mapping[Resource, Ratio],
    ) -> Finding:
        """Why a GPU is slow, by what else is known of it: clocks first, as they slow all the
        rest.
        """
        files = self._by_unit[unit]
        if cause := self._clock_cause(unit, low, ratios):
            return cause
        readings = sum(facts.readings for facts in files)
        shared = None
        if readings:
            shared = sum(facts.shared for facts in files) / readings
        if noisy or (shared or 0.0) >= _SHARED:
            spread, usual, _ = self._spreads.get(unit, (0.0, 0.0, 0.0))
            return noisy_neighbour(spread=spread, median_spread=usual, shared=shared)
        health = files[-1].health
        counted = [resource for resource in low if resource != Resource.OTHER]
        if counted == [Resource.MEMORY] and Resource.COMPUTE in ratios:
            remapped = health.get("rows_corrected", 0.0) + health.get("rows_uncorrected", 0.0)
            errors = health.get("ecc_uncorrected", 0.0)
            return slow_hbm(rows_remapped=round(remapped), ecc_errors=round(errors))
        if counted == [Resource.LINK]:
            return bad_link(
                width=_whole(health.get("pcie_width")),
                width_max=_whole(health.get("pcie_width_max")),
                generation=_whole(health.get("pcie_generation")),
                generation_max=_whole(health.get("pcie_generation_max")),
            )
        versions = []
        for name in _VERSIONS:
            own = files[-1].environment.get(name)
            usual_version = self._usual.get((self._model(unit), name))
            if own and usual_version and own != usual_version:
                versions.append(f"{name} {own} (most: {usual_version})")
        return other_versions(versions=versions) if versions else slow_for_unknown_reasons()

    def _clock_cause(
        self, unit: Unit, low: Sequence[Resource], ratios: Mapping[Resource, Ratio]
    ) -> Finding | None:
        """The clocks, where they explain half or more of what is lost."""
        if Resource.COMPUTE in low and unit in self._clocks:
            mhz, relative = self._clocks[unit]
            share = _explained(relative, ratios[Resource.COMPUTE].ratio)
            if share >= _EXPLAINS:
                reasons = 0
                for facts in self._by_unit[unit]:
                    reasons |= facts.reasons
                return low_clock(
                    mhz=mhz, median_mhz=mhz / relative, share=share, reasons=reason_names(reasons)
                )
        memory = self._memory_clocks.get(unit)
        if Resource.MEMORY in low and memory is not None:
            mhz, relative = memory
            share = _explained(relative, ratios[Resource.MEMORY].ratio)
            if share >= _EXPLAINS:
                return low_memory_clock(mhz=mhz, median_mhz=mhz / relative, share=share)
        return None


def _explained(relative_clock: float, ratio: float) -> float:
    """The share of what a GPU loses that it would lose by its clock alone."""
    if relative_clock >= 1 or ratio >= 1:
        return 0.0
    return min(1.0, log(relative_clock) / log(ratio))


def _is_low(ratio: Ratio) -> bool:
    return ratio.ratio < ratio.limit and (ratio.high is None or ratio.high < 1)


def _lowest(gpu: GpuReport) -> float:
    return min((ratio.ratio for ratio in gpu.ratios.values()), default=0.0)


def _with_limits(group: Mapping[Unit, Sequence[Value]]) -> dict[Unit, Ratio]:
    """One ratio of each GPU, and what it must be below: by how much the others differ."""
    middles = {unit: median(value.speed for value in values) for unit, values in group.items()}
    deviation = SIGMA * mad(list(middles.values()))
    limit = 1 - max(_LEAST, _DEVIATIONS * deviation)
    ratios = {}
    for unit, values in group.items():
        lows = [value.low for value in values if value.low is not None]
        highs = [value.high for value in values if value.high is not None]
        ratios[unit] = Ratio(
            ratio=middles[unit],
            low=median(lows) if len(lows) == len(values) else None,
            high=median(highs) if len(highs) == len(values) else None,
            figures=len(values),
            limit=limit,
        )
    return ratios


def _reported(figure: Measured) -> Figure:
    model, scenario, _, _, name = figure.key
    speeds = [value.speed for value in figure.values.values()]
    return Figure(
        model=model,
        scenario=scenario,
        params=figure.params,
        name=name,
        resource=figure.resource,
        unit=figure.unit,
        gpus=len(speeds),
        median=median(speeds),
        mad=mad(speeds),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
