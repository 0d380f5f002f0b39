"""`python -P -m gpulab.features.counters.report_file FILE`: prints the kernels of a report of ncu
as JSON, by the package ncu-report. A process of its own: on a damaged file the package aborts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from gpulab.features.counters.metrics import Advice, CountedKernel, counted_kernel, short_text
from gpulab.features.counters.tables import factor_of

_SCOPES = {1: "local", 2: "global"}


def main() -> None:
    import ncu_report

    ranges: Any = ncu_report.load_report(sys.argv[1])
    kernels = [_kernel(action) for each in ranges for action in each]
    sys.stdout.buffer.write(msgspec.json.encode(kernels))


def _kernel(action: Any) -> CountedKernel:
    raw = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = metric.value() if metric else None
        if isinstance(value, (int, float)):
            raw[name] = value * factor_of(metric.unit())
    size = _size(raw, "grid"), _size(raw, "block")
    name = action.name(action.NameBase_DEMANGLED)
    return counted_kernel(name, size, raw, _advice(action), _ranges(action))


def _ranges(action: Any) -> str:
    state = action.nvtx_state()
    domains = [state.domain_by_id(number) for number in state.domains()] if state else []
    return ":".join(name for domain in domains for name in domain.start_end_ranges())


def _size(raw: dict[str, float], what: str) -> str:
    sizes = [raw.get(f"launch__{what}_dim_{axis}", 0) for axis in "xyz"]
    return f"({', '.join(f'{size:.0f}' for size in sizes)})"


def _advice(action: Any) -> Iterator[Advice]:
    for rule in action.rule_results_as_dicts():
        estimate = rule.get("speedup_estimation")
        if estimate and estimate["speedup"]:
            yield Advice(
                rule=short_text(rule["rule_identifier"]),
                text=short_text(rule["rule_message"]["message"], 1000),
                percent=estimate["speedup"],
                scope=_SCOPES.get(estimate["type"], ""),
            )


if __name__ == "__main__":
    main()
