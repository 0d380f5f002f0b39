"""Arguments of `gpulab.run`, checked as the flags are: by name, with what to write instead.

Every mistake is a `UsageError`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from math import isfinite, nan
from numbers import Integral, Real
from os import PathLike, fspath
from os.path import lexists
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

from gpulab.core.limits import LARGEST_INTEGER, SPEEDUPS, TIME_S
from gpulab.flag_values import PROFILES, TELEMETRY
from gpulab.scenario import Param, shown
from gpulab.session.launch import Launch
from gpulab.session.requests import KINDS
from gpulab.session.settings import DEVICE, Settings, UsageError

_MOST_THREADS = 9999


def settings_of(launch: Launch, arguments: Mapping[str, object]) -> Settings:
    """From the arguments by their names, all that refine a run."""
    scenario = launch.entry.scenario
    defaults = scenario.params if scenario and not launch.functions else {}
    required = arguments["required_speedup"]
    if required is not None and launch.functions:
        _refuse(
            "required_speedup",
            required,
            "plain functions are not compared: put them into a scenario",
        )
    checked = {
        name: check(name, arguments[name])
        for name, check in _CHECKS.items()
        if arguments[name] is not None or name in _REQUIRED
    }
    return Settings(chosen=_parameters(arguments["params"], defaults), **checked)


def check_progress(value: object) -> None:
    if value is not None:
        _boolean("progress", value)


def run_file_of(value: object, trace: Path | None) -> Path | None:
    """Where the run file is to be; None: where it is by default."""
    if value is None:
        return None
    path = path_of("output", value)
    if lexists(path):  # a link that leads nowhere too
        _refuse("output", value, "it exists, and runs are never overwritten")
    if trace and trace.resolve() == path.resolve():
        _refuse("output", value, "that is where the trace goes")
    return path


def path_of(name: str, value: object) -> Path:
    """A path that results may name."""
    text = fspath(value) if isinstance(value, (str, PathLike)) else value
    if not isinstance(text, str) or not text or "\0" in text:
        _refuse(name, value, "write a path")
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(name, value, "write a path in UTF-8")
    return Path(text)


def name_of(scenario: object, *, with_arguments: bool = False) -> str:
    """A scenario's name or file as it was given, a function as FILE:function."""
    if isinstance(scenario, (str, PathLike)):
        text = fspath(scenario)
        if isinstance(text, str):
            return text
    if not callable(scenario):
        _refuse("scenario", scenario, "write a scenario's name, a file, or a function")
    function = inspect.unwrap(scenario)
    if not isinstance(function, FunctionType):
        _refuse("scenario", scenario, "it is no Python function: define one with def, in a file")
    file = _file_of(function, scenario)
    if not with_arguments:
        _require_no_arguments(function, scenario)
    return f"{file}:{function.__name__}"


def _file_of(function: FunctionType, given: Callable[..., object]) -> str:
    """The file of a function at its top level, where a process of its own finds it."""
    name = function.__name__
    file = function.__code__.co_filename
    if name == "<lambda>":
        _refuse("scenario", given, "a lambda has no name: define a function with def, in a file")
    if function.__qualname__ != name:
        hint = "it is defined inside another function or class: move it to the top of its file"
        _refuse("scenario", given, hint)
    if not file.endswith(".py") or not Path(file).is_file():
        hint = "it is defined at a prompt or in a notebook: write its cell to a file (%%writefile)"
        _refuse("scenario", given, hint)
    module = sys.modules.get(function.__module__)
    if getattr(module, name, None) is not given:
        _refuse("scenario", given, f"{name} of its file is another object: write FILE:NAME")
    return file


def _require_no_arguments(function: FunctionType, given: Callable[..., object]) -> None:
    required = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if required:
        hint = f"it takes arguments ({', '.join(required)})"
        _refuse("scenario", given, f"{hint}: arguments=FUNCTION makes them, or give defaults")


def _refuse(name: str, value: object, hint: str) -> NoReturn:
    raise UsageError(f"{name}={shown(value)}: {hint}")


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        _refuse(name, value, "write True or False")
    return value


def _number(value: object) -> float:
    """NaN, which no range holds, where it is none. NumPy's are numbers too."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return nan
    try:
        return float(value)
    except OverflowError:
        return nan


def _whole(value: object, allowed: range) -> int | None:
    """None where it is no whole number, or not one of those."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) not in allowed:
        return None
    return int(value)


def _seconds(name: str, value: object) -> float:
    number = _number(value)
    if not 0 < number <= TIME_S:
        _refuse(name, value, f"write a number of seconds above 0 and at most {TIME_S:.0f}")
    return number


def _width(name: str, value: object) -> float:
    number = _number(value)
    if not 0 < number < 1:
        _refuse(name, value, "write a share of a speedup, such as 0.002")
    return number


def _speedup(name: str, value: object) -> float:
    number = _number(value)
    if not SPEEDUPS[0] <= number <= SPEEDUPS[1]:
        _refuse(name, value, "write a speedup as a number, such as 1.2")
    return number


def _threads(name: str, value: object) -> int:
    number = _whole(value, range(1, _MOST_THREADS + 1))
    if number is None:
        _refuse(name, value, "write a number of threads, 1 or more")
    return number


def _seed(name: str, value: object) -> int:
    number = _whole(value, range(-LARGEST_INTEGER, LARGEST_INTEGER + 1))
    if number is None:
        hint = f"write a whole number between {-LARGEST_INTEGER} and {LARGEST_INTEGER}"
        _refuse(name, value, hint)
    return number


def _device(name: str, value: object) -> str:
    if not isinstance(value, str) or not DEVICE.fullmatch(value):
        _refuse(name, value, f"write {_listed(('cpu', 'cuda', 'cuda:N'))}")
    return value


def _telemetry(name: str, value: object) -> str:
    if not isinstance(value, str) or not TELEMETRY.fullmatch(value):
        hint = "write 'on', 'off', or a GPU's index or UUID as a text (nvidia-smi -L lists them)"
        _refuse(name, value, hint)
    return value


def _profile(name: str, value: object) -> str:
    if not isinstance(value, str) or value not in PROFILES:
        _refuse(name, value, f"write {_listed(PROFILES)}")
    return value


def _trace(name: str, value: object) -> Path:
    path = path_of(name, value)
    if path.suffix != ".json" or not path.absolute().parent.is_dir():
        _refuse(name, value, "write FILE.json, in a folder that exists")
    return path


def _arguments(name: str, value: object) -> str:
    """FILE:function, or a function at the top of a file."""
    if isinstance(value, str):
        return value
    if not callable(value) or not isinstance(inspect.unwrap(value), FunctionType):
        _refuse(name, value, "write a function that makes them, or FILE:function")
    return name_of(value, with_arguments=True)


_CHECKS: Mapping[str, Callable[[str, object], Any]] = {
    "arguments": _arguments,
    "device": _device,
    "threads": _threads,
    "time_s": _seconds,
    "width": _width,
    "required_speedup": _speedup,
    "seed": _seed,
    "smoke": _boolean,
    "timeout_s": _seconds,
    "telemetry": _telemetry,
    "quick": _boolean,
    "profile": _profile,
    "trace": _trace,
    "memory": _boolean,
}
_REQUIRED = ("threads", "smoke", "quick", "memory")
"""None is no value of these."""


def _listed(choices: Iterable[str]) -> str:
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}"


def _parameters(value: object, defaults: Mapping[str, Param]) -> dict[str, str]:
    """As texts, as flags give them; of names that the scenario lacks only their values are
    looked at.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        _refuse("params", value, "write a mapping of names to values, such as {'n': 64}")
    return {name: _parameter(name, chosen, defaults.get(name)) for name, chosen in value.items()}


def _parameter(name: str, value: object, default: Param | None) -> str:
    if not isinstance(value, str) and not isfinite(_number(value)) and not isinstance(value, bool):
        _refuse(name, value, "write a number, a text, True or False")
    if default is not None and isinstance(value, str) != isinstance(default, str):
        _refuse(name, value, f"{name} takes {KINDS[type(default)]}, as in {name}={default!r}")
    return str(value)
