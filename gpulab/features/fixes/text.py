"""The scenario that tries fixes: a text with the step as it is, and a variant for each of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gpulab.core.jobs import StepRequest
from gpulab.features.fixes.declarations import Fix
from gpulab.features.fixes.facts import StepFacts
from gpulab.session.step_text import step_text, variant_text

ALL_TOGETHER = "all_together"
_TRANSFORMATIONS = Path(__file__).with_name("transformations.py")
_TRIES = "Fixes tried on {what}: each variant is the step as it is with one change."


def scenario_text(
    request: StepRequest, facts: StepFacts, fixes: Sequence[Fix], together: Sequence[Fix] = ()
) -> str:
    """Each of `fixes` by itself, and those `together` in one variant."""
    used = list(dict.fromkeys([*fixes, *together]))
    variants = [variant_text(fix.name, f"{fix.sentence}.", _changes([fix])) for fix in fixes]
    if together:
        variants.append(variant_text(ALL_TOGETHER, "All that gained.", _changes(together)))
    given = {"inputs": facts.inputs, "state": facts.state}
    return step_text(
        request,
        title=_TRIES,
        flag="--try",
        expressions=[f"{name}={tuple(each)!r}" for name, each in given.items() if each],
        sources=[_source(fix.name) for fix in used],
        variants=variants,
    )


def _changes(fixes: Sequence[Fix]) -> list[str]:
    return [f"with_{fix.name}" for fix in fixes]


def _source(name: str) -> str:
    """The function of a fix, as it stands in the file of all of them, under a name that no variant
    has.
    """
    text = _functions()[name]
    return text.replace(f"def {name}(built: BuiltStep) -> None:", f"def with_{name}(built):", 1)


@cache
def _functions() -> dict[str, str]:
    text = _TRANSFORMATIONS.read_text(encoding="utf-8")
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    lines = text.splitlines(keepends=True)
    return {node.name: "".join(lines[node.lineno - 1 : node.end_lineno]) for node in nodes}
