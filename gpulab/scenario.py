"""What the author of a scenario writes: `Scenario`, its variants, `Work` and `Lab`; and the checks
of it.

Standard library and limits only.

Standard library only. The catalog builds the same objects from the text of a file, so whatever is
refused here is refused alike in a listing and in the worker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from keyword import iskeyword
from math import isfinite
from typing import Any, NoReturn, Protocol, TypeVar

from gpulab.core.limits import (
    CANDIDATES,
    LARGEST_INTEGER,
    NAME_LENGTH,
    PARAMETERS,
    RANKS,
    SPEEDUPS,
    SWEEP_VALUES,
    TERMS,
    TEXT_LENGTH,
    VARIANTS,
)

Param = bool | int | float | str
PARAM = (bool, int, float, str)


class ScenarioError(ValueError):
    """A declaration the lab cannot accept; the message says what to write instead."""


def as_number(name: str, value: Any, kind: type[int] | type[float]) -> int | float:
    """A plain number of what may be one of numpy's or torch's."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ScenarioError(
            f"{name}={shown(value)} is not a number up to {LARGEST_INTEGER}"
        ) from None
    if not 0 <= number <= LARGEST_INTEGER:
        raise ScenarioError(
            f"{name}={shown(value)} is not a finite number of 0 or more, up to {LARGEST_INTEGER}"
        )
    return int(value) if kind is int else number


def as_speedup(keyword: str, value: object) -> float:
    """Check a required speedup, and return it. ScenarioError."""
    low, high = SPEEDUPS
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ScenarioError(
            f"{keyword}={shown(value)}: a speedup is a number from {low:g} to {high:g}, such as 1.2"
        )
    return float(value)


def as_optional_text(keyword: str, value: object) -> str | None:
    return None if value is None else as_text(keyword, value)


def as_flag(keyword: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ScenarioError(f"{keyword}= must be True or False")
    return value


def as_table(keyword: str, values: Any, kinds: tuple[type, ...]) -> dict[str, Any]:
    """A mapping of names to values of the given kinds."""
    if values is not None and not isinstance(values, Mapping):
        raise ScenarioError(f"{keyword}={shown(values)} is a {type(values).__name__}: write a dict")
    table = dict(values or {})
    if len(table) > PARAMETERS:
        raise ScenarioError(f"{keyword}= has {len(table)} names: at most {PARAMETERS}")
    for name, value in table.items():
        if not isinstance(name, str) or not isinstance(value, kinds):
            allowed = ", ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
            raise ScenarioError(
                f"{keyword}= maps names to {allowed}, and {shown(name)} to {shown(value)}"
            )
        _require_text(keyword, name, NAME_LENGTH)
        _require_value(f"{keyword}= maps {name!r} to", value)
    return table


def as_sweep(name: str, values: tuple[Any, ...] | list[Any]) -> tuple[Param, ...]:
    if not 0 < len(values) <= SWEEP_VALUES:
        raise ScenarioError(
            f"sweep= has {len(values)} values of {name!r}: write 1 to {SWEEP_VALUES}"
        )
    for value in values:
        if not isinstance(value, PARAM):
            raise ScenarioError(
                f"sweep= has numbers, texts, True and False, and for {name!r} it has {shown(value)}"
            )
        _require_value(f"sweep= has for {name!r}", value)
    return tuple(values)


def as_params(values: Any) -> dict[str, Param]:
    """Parameters with their defaults: each name is that of an argument."""
    params = as_table("params", values, PARAM)
    for name in params:
        if name == "lab":
            raise ScenarioError(
                "params= cannot hold 'lab': it is the first argument of every variant"
            )
        if not name.isidentifier() or iskeyword(name):
            raise ScenarioError(
                f"params= holds {shown(name)}: write a name that an argument can have, such as 'n'"
            )
    return params


def as_cases(values: Iterable[Any], allowed: tuple[str, ...]) -> tuple[str | dict[str, Param], ...]:
    """Names of a closed list, and tables of parameters."""
    if isinstance(values, (str, Mapping)):
        raise ScenarioError(f"cases={shown(values)}: write a tuple, ({shown(values)},)")
    cases: list[str | dict[str, Param]] = []
    for value in values:
        if isinstance(value, Mapping):
            cases.append(as_table("cases", value, PARAM))
        else:
            cases += as_choices("cases", (value,), allowed)
    return tuple(cases)


def as_candidates(values: Iterable[Any]) -> dict[str, Mapping[str, Param]]:
    """Configurations for `tune`, by their texts: `block=128 warps=4`."""
    candidates: dict[str, Mapping[str, Param]] = {}
    for value in values:
        if not isinstance(value, Mapping) or not value:
            raise ScenarioError(
                f"tune(): a candidate is {shown(value)}: write a dict such as {{'block': 128}}"
            )
        table = as_table("candidate", value, PARAM)
        candidates.setdefault(
            " ".join(" ".join(f"{name}={item}".split()) for name, item in table.items()), value
        )
    if not 0 < len(candidates) <= CANDIDATES:
        raise ScenarioError(f"tune(): {len(candidates)} candidates: write 1 to {CANDIDATES}")
    return candidates


def as_environment(values: Any) -> dict[str, str | None]:
    environment = as_table("env", values, (str, type(None)))
    for name, value in environment.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            raise ScenarioError(
                f"env= holds {shown(name)}: a name has no '=', and neither it nor its value has NUL"
            )
    return environment


def _require_value(place: str, value: object) -> None:
    """Require a parameter to be a finite number of 64 bits, or a text."""
    if isinstance(value, str):
        _require_text(place, value, TEXT_LENGTH)
    elif isinstance(value, float) and not isfinite(value):
        raise ScenarioError(f"{place} {value!r}: write a finite number")
    elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ScenarioError(f"{place} a whole number beyond {LARGEST_INTEGER}: write a smaller one")


def _require_text(place: str, text: str, most: int) -> None:
    if len(text) > most:
        raise ScenarioError(f"{place} a text of {len(text)} characters: at most {most}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ScenarioError(
            f"{place} {shown(text)}, which holds a surrogate and no character: remove it"
        ) from None


def as_text(keyword: str, value: object, most: int = TEXT_LENGTH) -> str:
    """A text as one line."""
    if not isinstance(value, str) or not value.strip():
        raise ScenarioError(f"{keyword}= must be a short text, such as 'compute'")
    _require_text(f"{keyword}= is", value, most)
    return " ".join(value.split())


def shown(value: object) -> str:
    """A value in a message: its beginning, whatever it is."""
    try:
        text = repr(beginning(value) if isinstance(value, str) else value)
    except Exception:  # whole numbers of over 4,300 digits have no text
        return f"some {type(value).__name__}"
    return text if isinstance(value, str) else beginning(text)


def beginning(text: str) -> str:
    """A text in a message: as much of it as a name may have, or all where that saves none."""
    shortened = f"{text[:NAME_LENGTH]}... ({len(text) - NAME_LENGTH} more characters)"
    return min(text, shortened, key=len)


def as_choices(keyword: str, values: Iterable[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Words of a closed list."""
    if isinstance(values, str):
        raise ScenarioError(
            f"{keyword}={shown(values)} is a string: write a tuple, ({shown(values)},)"
        )
    chosen = tuple(values)
    for value in chosen:
        if value not in allowed:
            raise ScenarioError(f"{keyword}={shown(value)} is not one of {', '.join(allowed)}")
    return chosen


def as_terms(values: Iterable[str]) -> tuple[str, ...]:
    """Return words and short phrases that somebody may search for."""
    if isinstance(values, str):
        raise ScenarioError(f"terms={shown(values)} is a string: write a tuple, ({shown(values)},)")
    terms = tuple(as_text("terms", value, NAME_LENGTH) for value in values)
    if len(terms) > TERMS:
        raise ScenarioError(f"terms= has {len(terms)} terms: at most {TERMS}")
    return terms


KiB = 2**10
MiB = 2**20
GiB = 2**30

NEEDS = ("cuda", "cupy", "triton", "jax", "compiler")
ROOFS = (
    "device memory",
    "cache",
    "matrix",
    "vector",
    "launch",
    "latency",
    "host to device",
    "device to host",
    "all-reduce",
    "rank to rank",
)
CASES = ("free", "zeros", "negative", "signs", "scales", "infinities", "nan", "ties")
SHOWS = ("speedup", "memory", "curve", "clocks")
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
FIRST = "<the first variant>"
CONTROL = "control"

_FEWEST_ITEMS = 1e-9
Function = TypeVar("Function", bound=Callable[..., Any])


class Lab(Protocol):
    """The lab that every variant receives to build with: the device, its sizes, and a place for
    extra figures.
    """

    @property
    def device(self) -> Any:
        """The `torch.device` to build on."""

    @property
    def l2_bytes(self) -> int:
        """Bytes of the device's last-level cache (L2 on a GPU); 0 where it is not known."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of the device's memory."""

    @property
    def sms(self) -> int:
        """Streaming multiprocessors of a GPU; 0 on a CPU."""

    @property
    def generator(self) -> Any:
        """A `torch.Generator` on the device, for numbers that a step draws: seeded alike for every
        variant.
        """

    @property
    def rank(self) -> int:
        """The number of this process, from 0, where the scenario has several ranks."""

    @property
    def ranks(self) -> int:
        """Return how many processes run each variant."""

    @property
    def group(self) -> Any:
        """The `torch.distributed` process group of all ranks; None where there is one."""

    def phase(self, name: str) -> AbstractContextManager[Any]:
        """`with lab.phase("data"):` inside a step names a part of it. Phases are off in timed
        samples.
        """

    def useful(self) -> AbstractContextManager[Any]:
        """`with lab.useful():` inside a step marks the work that the step is for. Goodput is its
        share of the time.
        """

    def report(self, name: str, value: float) -> None:
        """Show a figure that the variant measured itself beside the result; the last value of a
        name counts.
        """

    def skip(self, reason: str) -> NoReturn:
        """Leave this variant out, from within its build: the device cannot do it. The others go
        on.
        """

    def tune(self, candidates: Iterable[Mapping[str, Param]], make: Callable[..., Work]) -> Work:
        """Carry out `gpulab.tune`."""


@dataclass(frozen=True, eq=False)
class Work:
    """One step of a variant, and what the lab must know to time and check it.

    `bytes`, `flops` (in `dtype`) and `items` of useful work are per step. `inputs` are the tensors
    the step reads and must not change; `state` those it changes, put back before every block.
    `output` is what to check (tensors, or a function that returns them, called after each step
    inside the clock); by default what `step` returns. `context` is a reusable context manager, or a
    function that makes one, entered around each block outside the clock.
    """

    step: Callable[[], Any]
    bytes: int | None = None
    flops: int | None = None
    dtype: str | None = None
    items: float = 1
    inputs: Any = ()
    state: Any = ()
    output: Any = None
    tolerance: float | None = None
    context: Any = None

    def __post_init__(self) -> None:
        if not callable(self.step):
            raise ScenarioError(
                f"Work(step=...) is a {type(self.step).__name__}: pass a function that does one "
                "step"
            )
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ScenarioError(f"dtype={shown(self.dtype)} is not one of {', '.join(DTYPES)}")
        for name, kind in (("bytes", int), ("flops", int), ("items", float), ("tolerance", float)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_number(name, value, kind))
        if not self.items >= _FEWEST_ITEMS:
            raise ScenarioError(
                f"items={self.items!r}: a step does a positive amount of useful work, "
                f"{_FEWEST_ITEMS:g} or more"
            )


def tune(lab: Lab, candidates: Iterable[Mapping[str, Param]], make: Callable[..., Work]) -> Work:
    """The fastest of several configurations of one variant, by a measurement of its own.

    `make(**candidate)` returns the `Work` of one; what does not compile, does not fit, calls
    `lab.skip` or computes something else than the first is left out, and the reason is shown. Make
    what they share, such as tensors, before. All are screened in rounds in random order, the
    finalists are compared in pairs, and the work of the best is made and returned. The choice is
    kept for this device, these versions, parameters and candidates, and this file.
    """
    return lab.tune(candidates, make)


def first_paragraph(docstring: str | None) -> str:
    """Return the first paragraph of a docstring as one line, at most TEXT_LENGTH characters."""
    first = re.split(r"\n\s*\n", (docstring or "").strip(), maxsplit=1)[0]
    return " ".join(first.split())[:TEXT_LENGTH]


@dataclass(frozen=True)
class Variant:
    """One way of doing the scenario's work. `function` is None where only the text was read."""

    name: str
    summary: str = ""
    needs: tuple[str, ...] = ()
    against: str | None = FIRST
    claim: str | None = None
    unchecked: str | None = None
    function: Callable[..., Any] | None = field(default=None, compare=False)


class Scenario:
    """A topic, what is needed, parameters, and variants that do the same useful work. The first is
    the baseline.

    Raises `ScenarioError` on a value outside the closed lists or a parameter that does not exist.
    """

    def __init__(
        self,
        topic: str,
        *,
        needs: Iterable[str] = (),
        params: Mapping[str, Param] | None = None,
        cpu: Mapping[str, Param] | None = None,
        smoke: Mapping[str, Param] | None = None,
        sweep: Mapping[str, Iterable[Param]] | None = None,
        roof: str | None = None,
        per: str = "step",
        item: str = "item",
        clock: str = "wall",
        cache: str = "hot",
        ladder: bool = False,
        exclusive: bool = False,
        increasing_memory: bool = False,
        ranks: int | str = 0,
        shows: str = "speedup",
        fail_below: float | None = None,
        cases: Iterable[str | Mapping[str, Param]] = (),
        env: Mapping[str, str | None] | None = None,
        claim: str = "",
        no_effect_reason: str = "",
        terms: Iterable[str] = (),
    ) -> None:
        self.topic = as_text("topic", topic)
        self.needs = as_choices("needs", needs, NEEDS)
        self.params = as_params(params)
        self.cpu = self._params_table("cpu", cpu)
        self.smoke = self._params_table("smoke", smoke)
        swept = self._params_table("sweep", sweep, (tuple, list))
        self.sweep = {name: as_sweep(name, values) for name, values in swept.items()}
        self.roof = None if roof is None else as_choices("roof", (roof,), ROOFS)[0]
        self.per = as_choices("per", (per,), ("step", "item"))[0]
        self.item = as_text("item", item, NAME_LENGTH)
        self.clock = as_choices("clock", (clock,), ("wall", "device"))[0]
        self.cache = as_choices("cache", (cache,), ("hot", "cold"))[0]
        self.ladder = as_flag("ladder", ladder)
        self.exclusive = as_flag("exclusive", exclusive)
        self.increasing_memory = as_flag("increasing_memory", increasing_memory)
        self.ranks = self._as_ranks(ranks)
        self.shows = as_choices("shows", (shows,), SHOWS)[0]
        self.fail_below = None if fail_below is None else as_speedup("fail_below", fail_below)
        self.cases = as_cases(cases, CASES)
        for case in self.cases:
            if not isinstance(case, str):
                self._params_table("cases", case)
        self.env = as_environment(env)
        self.claim = as_text("claim", claim) if claim else ""
        self.no_effect_reason = (
            as_text("no_effect_reason", no_effect_reason) if no_effect_reason else ""
        )
        self.terms = as_terms(terms)
        self.variants: dict[str, Variant] = {}

    def variant(
        self,
        function: Function | None = None,
        /,
        *,
        needs: Iterable[str] = (),
        against: str | None = FIRST,
        claim: str | None = None,
        unchecked: str | None = None,
    ) -> Any:
        """Register a function that builds one variant; use it as `@scenario.variant` or with
        arguments.
        """

        def register(function: Function) -> Function:
            self.add(
                Variant(
                    name=function.__name__,
                    summary=first_paragraph(function.__doc__),
                    needs=as_choices("needs", needs, NEEDS),
                    against=as_optional_text("against", against),
                    claim=as_optional_text("claim", claim),
                    unchecked=as_optional_text("unchecked", unchecked),
                    function=function,
                )
            )
            return function

        return register if function is None else register(function)

    def add(self, variant: Variant) -> None:
        """Add one variant; the first is the baseline, so it cannot name another one."""
        if len(self.variants) == VARIANTS:
            raise ScenarioError(f"more than {VARIANTS} variants: split the scenario")
        if len(variant.name) > NAME_LENGTH:
            raise ScenarioError(
                f"the name of a variant has at most {NAME_LENGTH} characters: {shown(variant.name)}"
            )
        if variant.name in self.variants:
            raise ScenarioError(f"two variants are called {variant.name!r}: rename one")
        if variant.name == CONTROL:
            raise ScenarioError(
                f"{CONTROL!r} names the lab's second build of the baseline: rename the variant"
            )
        if not self.variants and variant.against != FIRST:
            raise ScenarioError("the first variant is the baseline: only others take against=")
        if variant.against not in (FIRST, None) and variant.against not in self.variants:
            raise ScenarioError(f"against={variant.against!r} is not a variant above this one")
        self.variants[variant.name] = variant

    def resolve(
        self, *, on_cpu: bool, smoke: bool, chosen: Mapping[str, Param]
    ) -> dict[str, Param]:
        """The parameters of a run: defaults, then the CPU's, then the smoke run's, then the
        user's.
        """
        return {
            **self.params,
            **(self.cpu if on_cpu else {}),
            **(self.smoke if smoke else {}),
            **chosen,
        }

    def _as_ranks(self, ranks: object) -> int | str:
        if isinstance(ranks, str) and isinstance(self.params.get(ranks), int):
            return ranks
        if isinstance(ranks, int) and not isinstance(ranks, bool) and 0 <= ranks <= RANKS:
            return ranks
        raise ScenarioError(
            f"ranks={shown(ranks)} is neither a number from 1 to {RANKS} nor the name of a "
            "parameter that is one"
        )

    def ranks_of(self, params: Mapping[str, Param]) -> int:
        """Return the processes of each variant, by a run's parameters; 0: without a group."""
        if isinstance(self.ranks, int):
            return self.ranks
        ranks = params[self.ranks]
        if not isinstance(ranks, int) or not 1 <= ranks <= RANKS:
            raise ScenarioError(f"{self.ranks}={ranks}: ranks are a number from 1 to {RANKS}")
        return ranks

    def _params_table(
        self, keyword: str, values: Mapping[str, Any] | None, kinds: tuple[type, ...] = ()
    ) -> dict[str, Any]:
        """A table whose names are all parameters of the scenario."""
        table = as_table(keyword, values, kinds or PARAM)
        for name in table:
            if name not in self.params:
                raise ScenarioError(f"{keyword}= names {shown(name)}, which is not in params")
        return table
