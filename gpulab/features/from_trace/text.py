"""The text of a scenario with one variant for each of a recording's heaviest operations."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Sequence

from gpulab.core.limits import NAME_LENGTH
from gpulab.core.text import cut, one_line
from gpulab.core.units import plural, seconds
from gpulab.features.from_trace.calls import RecordedCall, RecordedCalls
from gpulab.features.from_trace.isolated import (
    IsolatedCall,
    NotIsolableError,
    common_dtype,
    isolated,
)

_WIDTH = 100
_MOST_NAMED = 3
_HEAD = '''"""{title}: the heaviest operations of a recorded trace, each by itself.

{lesson}
"""

from collections import deque

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(topic="from a trace", params={{"operation": "{heaviest}"}}{options})


@scenario.variant
def recorded(lab, operation):
    """The operation to improve, as it was recorded: --set operation=NAME chooses another."""
    if operation not in scenario.variants or operation == "recorded":
        names = ", ".join(list(scenario.variants)[1:])
        raise ValueError(f"no operation {{operation}} below: there are {{names}}")
    return scenario.variants[operation].function(lab)
'''
_HELPERS = '''

def _tensor(lab, dtype, shape, strides=None, below=None, positive=False, ones=False):
    """Random numbers, laid out as recorded; `below`: whole ones from 0."""
    sizes = shape
    if strides:
        sizes = (1 + sum((size - 1) * stride for size, stride in zip(shape, strides)),)
    if below is not None:
        data = torch.randint(below, sizes, device=lab.device)
    elif ones:
        data = torch.ones(sizes, device=lab.device)
    elif positive:
        data = torch.rand(sizes, device=lab.device) + 0.5
    else:
        data = torch.randn(sizes, device=lab.device)
    data = data.to(dtype)
    return data.as_strided(shape, strides) if strides else data


def _keeping(step):
    """The step; unless they are large, its last results are kept, so that the next is elsewhere."""
    result = step()
    outputs = result if isinstance(result, tuple | list) else (result,)
    large = sum(output.nbytes for output in outputs if isinstance(output, torch.Tensor)) > 16 * MiB
    kept = deque(maxlen=0 if large else 6)

    def keeping_step():
        result = step()
        kept.append(result)
        return result

    for _ in range(2 * kept.maxlen):
        keeping_step()
    return keeping_step
'''


_LEAST_SHARE = 0.0005
"""What takes less would stand there with 0.0 %."""


class NoneIsolableError(ValueError):
    """None of the heaviest operations can be called by itself; the message says why."""


def operation_file(title: str, recorded: RecordedCalls, top: int) -> tuple[str, int, int]:
    """The text, how many operations are in it, and how many are named in it only.
    NoneIsolableError.
    """
    heaviest = [call for call in recorded.calls if call.share >= _LEAST_SHARE][:top]
    list_dtype = common_dtype(recorded.calls)
    calls: list[IsolatedCall] = []
    others: list[tuple[RecordedCall, str]] = []
    for call in heaviest:
        try:
            calls.append(isolated(call, list_dtype))
        except NotIsolableError as error:
            others.append((call, str(error)))
    if not calls:
        raise NoneIsolableError("; ".join(_by_reason(others)) or "no operations in it")
    names = _names(calls)
    options = ', needs=("cuda",), clock="device"' if recorded.on_device else ""
    head = _HEAD.format(
        title=title, lesson=_lesson(recorded, calls), heaviest=names[0], options=options
    )
    variants = [
        _variant(call, name, recorded.steps) for call, name in zip(calls, names, strict=True)
    ]
    return (
        head + "".join(variants) + _HELPERS + _remainder(others, recorded),
        len(calls),
        len(others),
    )


def _lesson(recorded: RecordedCalls, calls: Sequence[IsolatedCall]) -> str:
    share = sum(call.recorded.share for call in calls)
    device = "the device's" if recorded.on_device else "the recorded"
    steps = f" of {plural(recorded.steps, 'step')}" if recorded.steps else ""
    paragraphs = (
        f"Together {share:.0%} of {device} time{steps}; shapes, strides and dtypes are as "
        "recorded, values are random. Each is timed for scale: they do different work, and are "
        "compared with nothing. The last results are kept (_keeping), so that the next is written "
        "where caches do not hold it; tensors that are read stay in the caches.",
        "To try something faster for one, choose it (params, or --set operation=NAME), and write "
        "a variant below: @scenario.variant above a function with the same tensors, from the "
        "same _tensor calls in the same order, and another step. It is checked, and compared "
        "with `recorded`.",
    )
    return "\n\n".join(textwrap.fill(paragraph, _WIDTH) for paragraph in paragraphs)


def _variant(call: IsolatedCall, name: str, steps: int | None) -> str:
    tensors = "".join(_assignment(variable, made) for variable, made in call.tensors)
    read = [
        variable
        for variable, _ in call.tensors
        if variable not in (*call.changed, *call.overlapping)
    ]
    step = f"lambda: {call.call}" if call.changed else f"_keeping(lambda: {call.call})"
    words = [step, *_keyword("inputs", read), *_keyword("state", call.changed)]
    work = f"    return Work({', '.join(words)})\n"
    if len(work) > _WIDTH:
        work = "    return Work(\n" + "".join(f"        {word},\n" for word in words) + "    )\n"
    return (
        f"\n\n@scenario.variant(against=None)\ndef {name}(lab):\n    "
        f'"""{_docstring(call, steps)}"""\n{tensors}{work}'
    )


def _docstring(call: IsolatedCall, steps: int | None) -> str:
    recorded = call.recorded
    summary = (
        f"{recorded.name}: {seconds(recorded.median_s)}, {_count(recorded, steps)}, "
        f"{recorded.share:.1%} of the time."
    )
    details = [f"From {seconds(recorded.fastest_s)} to {seconds(recorded.slowest_s)} in the trace."]
    if recorded.callers:
        details.append(f"Called by {', '.join(recorded.callers[:3])}.")
    details += [f"{note}." for note in dict.fromkeys(call.notes)]
    # A trace may come from others, and its names are written to a file that is run.
    plain = one_line(" ".join(details)).replace("\\", "/").replace('"', "'")
    lines = textwrap.wrap(plain, _WIDTH - 4, break_long_words=False)
    return "\n".join([summary, "", *(f"    {line}" for line in lines), "    "])


def _count(recorded: RecordedCall, steps: int | None) -> str:
    count = recorded.calls / (steps or 1)
    return f"{count:.3g} call{'s' * (count != 1)}{' a step' * (steps is not None)}"


def _assignment(variable: str, made: str) -> str:
    return _filled(f"{variable} = {made}", " " * 4, " " * 8) + "\n"


def _filled(text: str, first: str, following: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=first, subsequent_indent=following, break_long_words=False
    )


def _keyword(name: str, variables: Sequence[str]) -> list[str]:
    listed = ", ".join(variables)
    return [f"{name}=({listed})" if len(variables) > 1 else f"{name}={listed}"] * bool(variables)


def _remainder(others: Sequence[tuple[RecordedCall, str]], recorded: RecordedCalls) -> str:
    rows = _by_reason(others)
    if recorded.elsewhere >= 0.001:
        rows.append(
            f"{recorded.elsewhere:.1%} of the device's time was launched by no operation in the "
            "trace"
        )
    if not rows:
        return ""
    lines = [_filled(one_line(row), "# - ", "#   ") for row in rows]
    return "\n\n# Not in this file:\n" + "\n".join(lines) + "\n"


def _by_reason(others: Sequence[tuple[RecordedCall, str]]) -> list[str]:
    """Return a sentence for each reason: its share of the time, and the first operations of it."""
    groups: dict[str, list[RecordedCall]] = defaultdict(list)
    for call, reason in others:
        groups[reason].append(call)
    rows = []
    for reason, calls in sorted(groups.items(), key=lambda group: -sum(c.share for c in group[1])):
        names = list(dict.fromkeys(cut(call.name, NAME_LENGTH) for call in calls))
        named = ", ".join(names[:_MOST_NAMED])
        if len(names) > _MOST_NAMED:
            named += f" and {len(names) - _MOST_NAMED} more"
        rows.append(f"{sum(call.share for call in calls):.1%} of the time, {named}: {reason}")
    return rows


def _shape(dims: object) -> str:
    """64x32; empty of numbers and of lists."""
    plain = isinstance(dims, list) and all(isinstance(size, int) for size in dims)
    return "x".join(map(str, dims)) if plain and isinstance(dims, list) else ""


def _names(calls: Sequence[IsolatedCall]) -> list[str]:
    """mm_64x32_32x8, of which a second one is mm_64x32_32x8_2."""
    names: list[str] = []
    for call in calls:
        plain = _name(call.recorded)[: NAME_LENGTH - 4]
        same = sum(re.fullmatch(rf"{re.escape(plain)}(_\d+)?", name) is not None for name in names)
        names.append(f"{plain}_{same + 1}" if same else plain)
    return names


def _name(call: RecordedCall) -> str:
    inputs = call.inputs or ()
    shapes = [_shape(entry.dims) for entry in inputs if _shape(entry.dims)][:3]
    tensors = next((len(entry.dims) for entry in inputs if entry.type == "TensorList"), 0)
    described = shapes or [f"{tensors}_tensors" if tensors else "call"]
    name = "_".join([call.name.removeprefix("aten::").strip("_"), *described])
    return name if name[0].isalpha() else f"call{name}"
