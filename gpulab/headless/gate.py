"""The gate of `--run` and `--compare`: what flags and a file demand, and the file for a CI."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from glob import escape
from pathlib import Path

from msgspec.structs import replace

from gpulab.catalog.catalog import catalog
from gpulab.core.files import write_whole
from gpulab.core.jobs import Required
from gpulab.features.gate.outputs import Case, junit
from gpulab.features.gate.thresholds import (
    DEFAULT_FILE,
    ThresholdFile,
    Thresholds,
    read_thresholds,
    thresholds_of,
)
from gpulab.headless.output import Terminal
from gpulab.headless.standard_streams import OutputError
from gpulab.options import Options, UsageError
from gpulab.session.launch import Launch


class RunGate:
    """A command's gate: each scenario's thresholds, by flags, else by the file. UsageError."""

    def __init__(self, options: Options) -> None:
        self._flags = thresholds_of(options.fail_below, options.fail_if_slower)
        self._file = ThresholdFile()
        self._variants: Mapping[str, Collection[str]] = {}
        path = options.gate or DEFAULT_FILE
        if options.gate or path.is_file():
            self._file = read_thresholds(path)

    def of(self, scenario: str) -> Thresholds:
        """Return a scenario's thresholds: flags, for variants that it has, over the file's."""
        flags = self._flags
        if variants := self._variants.get(scenario):
            own = {name: least for name, least in flags.speedups.items() if name in variants}
            flags = replace(flags, speedups=own)
        return flags.over(self._file.of(scenario))

    def required_of(self, scenario: str) -> Required:
        """Return what the comparisons of one run must reach."""
        return self.of(scenario).required

    def announce(self, terminal: Terminal) -> None:
        """Say which file counts, where nobody named it."""
        if self._file.path:
            terminal.note(f"thresholds: {self._file.path}", "dim")

    def check(self, launches: Sequence[Launch]) -> None:
        """UsageError where a scenario or a variant is named that there is not."""
        variants: dict[str, Collection[str]] = {}
        for launch in launches:
            scenario = launch.entry.scenario
            if scenario and not launch.functions:
                variants[launch.entry.name] = scenario.variants
        self.check_names(variants)

    def check_names(self, variants: Mapping[str, Collection[str]]) -> None:
        """The same of scenarios with their variants; others may be in the catalog. A scenario
        without variants has no result: which it has is not known.
        """
        self._variants = variants
        scenarios = {*variants}
        if not scenarios.issuperset(self._file.scenarios):
            scenarios |= {entry.name for entry in catalog()}
            folder = Path(self._file.path).parent
            scenarios |= {name for name in self._file.scenarios if _has_file(name, folder)}
        self._file.check(scenarios)
        every = {name for names in variants.values() for name in names}
        for name in self._flags.speedups if every else ():
            if name not in every:
                raise UsageError(
                    f"--fail-below {name}=...: there is no variant {name}; "
                    f"the variants: {', '.join(sorted(every)) or 'none'}"
                )
        for scenario, names in variants.items():
            for name in self._file.of(scenario).speedups if names else ():
                if name not in names:
                    raise UsageError(
                        f"{self._file.path}: [{scenario}]: fail_below.{name}: there is no variant "
                        f"{name}; the variants: {', '.join(names)}"
                    )


def _has_file(scenario: str, folder: Path) -> bool:
    """Return whether a scenario is in a folder or not far below: another command runs it."""
    if Path(scenario).name != scenario:
        return False
    name = f"{escape(scenario)}.py"
    # up to three folders below that of the file of thresholds
    return any(next(folder.glob(f"{'*/' * depth}{name}"), None) is not None for depth in range(4))


def write_junit(target: Path, cases: Sequence[Case]) -> None:
    """OutputError where it cannot be written."""
    try:
        write_whole(target, junit(cases))
    except OSError as error:
        raise OutputError(f"--junit {target}: {error.strerror}") from None
