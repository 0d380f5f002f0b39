"""The scenario that tries fixes: a text with the step as it is, and a variant for each of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gpulab.features.fixes.declarations import Fix
from gpulab.features.fixes.facts import StepFacts, StepRequest

UNTOUCHED = "as_it_is"
ALL_TOGETHER = "all_together"
_TRANSFORMATIONS = Path(__file__).with_name("transformations.py")


_TRIES = "Fixes tried on {what}: each variant is the step as it is with one change."


def scenario_text(
    request: StepRequest,
    facts: StepFacts,
    fixes: Sequence[Fix],
    together: Sequence[Fix] = (),
    *,
    title: str = _TRIES,
    flag: str = "--try",
) -> str:
    """Each of `fixes` by itself, and those `together` in one variant."""
    what = f"{Path(request.file).name}:{request.function}"
    used = list(dict.fromkeys([*fixes, *together]))
    sources = [_source(fix.name) for fix in used]
    imports = ["import torch\n"] if any("torch." in source for source in sources) else []
    if any("os." in source for source in sources):
        imports.insert(0, "import os\n")
    if any("@contextmanager" in source for source in sources):
        imports.insert(0, "from contextlib import contextmanager\n")
    head = [
        f'"""{title.format(what=what)}\n\n',
        f"Written by gpulab {flag}. The program itself is imported, and never edited; its file\n",
        'is run anew for each build.\n"""\n\n',
        *_sorted_imports(imports),
        "from gpulab import Scenario\n",
        "from gpulab.function_step import FunctionStep\n\n",
        f'scenario = Scenario("{flag} {what}")\n',
        *_step(request, facts),
    ]
    variants = [_variant(UNTOUCHED, f"{what} as it is.", ())]
    variants += [_variant(fix.name, f"{fix.sentence}.", [fix]) for fix in fixes]
    if together:
        variants.append(_variant(ALL_TOGETHER, "All that gained.", together))
    return "".join([*head, *(f"\n\n{source}" for source in (*sources, *variants))])


def _sorted_imports(imports: Sequence[str]) -> list[str]:
    standard = sorted((line for line in imports if "torch" not in line), key=_plain_first)
    torch = [line for line in imports if "torch" in line]
    return [*standard, *(["\n"] if standard else []), *torch, *(["\n"] if torch else [])]


def _plain_first(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def _step(request: StepRequest, facts: StepFacts) -> list[str]:
    lines = ["step = FunctionStep(\n", f"    {request.file!r},\n", f"    {request.function!r},\n"]
    if request.arguments:
        lines.append(f"    arguments={request.arguments!r},\n")
    for name in ("inputs", "state"):
        if expressions := getattr(facts, name):
            lines.append(f"    {name}={tuple(expressions)!r},\n")
    return [*lines, ")\n"]


def _variant(name: str, summary: str, fixes: Sequence[Fix]) -> str:
    given = "".join(f", with_{fix.name}" for fix in fixes)
    summary = summary.replace("\\", "/").replace('"', "'")
    body = f'    """{summary}"""\n    return step.work(lab{given})\n'
    return f"@scenario.variant\ndef {name}(lab):\n{body}"


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
