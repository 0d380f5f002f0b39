"""What only a script gives to `gpulab.run`: functions, parameters that have a type, paths.

Every mistake is a `UsageError`, by name, with what to write instead.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from os.path import lexists
from pathlib import Path
from types import FunctionType
from typing import NoReturn

from gpulab.option_values import WrongValueError, path, text_of
from gpulab.options import KEYWORDS, Options, UsageError, flag_of
from gpulab.scenario import shown
from gpulab.session.launch import Launch


def options_of(launch: Launch, params: object, keywords: Mapping[str, object]) -> Options:
    """Return the options that keywords give, checked as flags are; None is what was not given."""
    given = {name: value for name, value in keywords.items() if value is not None}
    for name in given:
        if name not in KEYWORDS:
            raise TypeError(f"gpulab.run() got an unexpected keyword argument {name!r}")
    if launch.functions and "required_speedup" in given:
        hint = "plain functions are not compared: put them into a scenario"
        _refuse("required_speedup", given["required_speedup"], hint)
    made_by = given.get("arguments")
    if callable(made_by):
        given["arguments"] = name_of(made_by, with_arguments=True)
    checked = {name: flag_of(name).value(value, f"{name}=") for name, value in given.items()}
    return Options(chosen=_parameters(params), **checked)


def run_file_of(value: object, trace: Path | None) -> Path | None:
    """Return where the run file is to be; None: where it is by default."""
    if value is None:
        return None
    file = path_of("output", value)
    if lexists(file):  # a link that leads nowhere too
        _refuse("output", value, "it exists, and runs are never overwritten")
    if trace and trace.resolve() == file.resolve():
        _refuse("output", value, "that is where the trace goes")
    return file


def path_of(name: str, value: object) -> Path:
    """A path that results may name."""
    try:
        return path(text_of(value) if isinstance(value, (str, PathLike)) else "")
    except WrongValueError as error:
        _refuse(name, value, f"write {error}")


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


def _parameters(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        _refuse("params", value, "write a mapping of names to values, such as {'n': 64}")
    return {name: str(chosen) for name, chosen in value.items()}
