"""The values that options take, from their texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path

from gpulab.core.limits import LARGEST_INTEGER, RANKS, SPEEDUPS, TIME_S, VARIANTS


class WrongValueError(ValueError):
    """A value is wrong; the message says what to write instead."""


def shown(given: object) -> str:
    from gpulab.scenario import shown

    return shown(given)


def text_of(given: object) -> str:
    """Return what a script gives, as a flag would. Numbers of NumPy are numbers too."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        return str(int(given))
    if isinstance(given, Real) and not isinstance(given, bool):
        return repr(float(given))
    text = fspath(given) if isinstance(given, PathLike) else given
    if not isinstance(text, str):
        raise WrongValueError("a number or a text")
    return text


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise WrongValueError("NAME=VALUE")
    return name, value


def seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value <= TIME_S:
        raise WrongValueError(f"a number of seconds above 0 and at most {TIME_S:.0f}")
    return value


def sampling_interval(text: str) -> float:
    """20us, or the same in seconds."""
    number = text.removesuffix("us").removesuffix("µs")
    value = _number(number) * (1e-6 if number != text else 1.0)
    if not 9.9e-6 <= value <= 100.1e-6:
        raise WrongValueError("10us to 100us")
    return value


def seed(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or abs(int(text)) > LARGEST_INTEGER:
        raise WrongValueError(f"a whole number between {-LARGEST_INTEGER} and {LARGEST_INTEGER}")
    return int(text)


def matching(pattern: str, what: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise WrongValueError(what)
        return text

    return parse


device = matching(r"cpu|cuda(:[0-9]{1,4})?", "cpu, cuda or cuda:N")
telemetry = matching(
    r"on|off|[0-9]{1,4}|(GPU|MIG)-[a-zA-Z0-9_./-]{1,90}",
    "on, off, or a GPU's index or UUID (nvidia-smi -L lists them)",
)
architecture = matching(r"sm_[0-9]{2,3}[a-z]?", "an architecture, such as sm_80, sm_90, sm_100")
_PORT = r"[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
address = matching(
    rf"([0-9A-Za-z.-]+:|\[[0-9A-Fa-f:]+\]:)?({_PORT})",
    "a port up to 65535 or HOST:PORT, such as 8000 or 0.0.0.0:8000",
)


def expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise WrongValueError(f"a regular expression ({error})") from None
    return text


def one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise WrongValueError(f"{', '.join(choices[:-1])} or {choices[-1]}")
        return choices[choices.index(text)]

    return parse


def whole(least: int, most: int, what: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[1-9][0-9]{0,11}", text) or not least <= int(text) <= most:
            raise WrongValueError(what)
        return int(text)

    return parse


ranks = whole(2, RANKS, f"a number of processes from 2 to {RANKS}")
repetitions = whole(2, 9999, "a number of runs, 2 or more")
threads = whole(1, 9999, "a number of threads, 1 or more")
operations = whole(1, VARIANTS, f"a number of operations from 1 to {VARIANTS}")
steps = whole(1, 10**12 - 1, "a number of steps, 1 or more")


def file_name(text: str) -> str:
    if not text or "\0" in text:
        raise WrongValueError("the name of a file")
    return text


def path(text: str) -> Path:
    """A file that results name, so that its name must be text."""
    file_name(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise WrongValueError("a path in UTF-8") from None
    return Path(text)


def output(text: str) -> Path:
    """A run file, or a folder of them: each of many tasks has its own."""
    from gpulab.core.host import with_task

    return path(with_task(text))


def trace(text: str) -> Path:
    file = path(text)
    try:
        fits = file.suffix == ".json" and file.absolute().parent.is_dir()
    except OSError:  # a name that is too long, or a working directory that was deleted
        fits = False
    if not fits:
        raise WrongValueError("FILE.json, in a folder that exists")
    return file


def speedup(text: str) -> float:
    value = _number(text.removesuffix("x"))
    if not SPEEDUPS[0] <= value <= SPEEDUPS[1]:
        raise WrongValueError("a speedup, such as 1.2x")
    return value


def least_speedup(text: str) -> tuple[str, float]:
    """A speedup, or VARIANT=SPEEDUP; the name is empty where there is none."""
    name, equals, value = text.rpartition("=")
    if equals and not name.isidentifier():
        raise WrongValueError("1.2x, or VARIANT=1.2x")
    return name, speedup(value)


def share(text: str) -> float:
    """3%, or the same as a number: 0.03."""
    value = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise WrongValueError("a share, such as 3%")
    return value


def _number(text: str) -> float:
    """The number, or 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
