"""Whether the operations of a profile belong to the step: what runs in one step of many is not what is timed."""

from __future__ import annotations

import re
from dataclasses import replace

from gpulab.protocol.finding import finding
from gpulab.protocol.statuses import Status
from gpulab.report.state import RunState
from gpulab.report.variant_state import VariantState

_PRODUCTS = re.compile(r"aten::(mm|bmm|addmm|baddbmm|addbmm|mv|dot|_?convolution|\w*attention\w*|linalg_\w+)$")
"""Operations that are most of a step where there are any."""
_LEAST = 0.5
"""Products in each step on average, below which most steps do without."""


def with_step_work(state: RunState) -> RunState:
    """The state with variants invalid whose products run in some steps only, where the baseline's run in each."""
    baseline = next(iter(state.variants.values()), None)
    usual = _products_per_step(baseline) if baseline else None
    if usual is None or usual < 1:
        return state
    return replace(state, variants={name: _judged(variant, usual) for name, variant in state.variants.items()})


def _judged(variant: VariantState, usual: float) -> VariantState:
    products = _products_per_step(variant)
    if products is None or not 0 < products < _LEAST or variant.status not in (Status.PENDING, Status.OK):
        return variant
    reason = finding("computes_in_some_steps", variant.info.name, products=products, baseline=usual)
    return replace(variant, status=Status.INVALID, reason=reason)


def _products_per_step(variant: VariantState) -> float | None:
    profiled = variant.profiled
    if profiled is None or profiled.steps * _LEAST < 1:
        return None
    calls = (row.calls for row in profiled.operations if not row.on_device and _PRODUCTS.match(row.name))
    return sum(calls) / profiled.steps
