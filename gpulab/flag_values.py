"""The values that flags of the command line take, from their texts."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from gpulab.core.limits import LARGEST_INTEGER, RANKS, SPEEDUPS, TIME_S, VARIANTS


def shown(text: str) -> str:
    from gpulab.scenario import shown

    return shown(text)


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{shown(text)}: write NAME=VALUE")
    return name, value


def seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value <= TIME_S:
        raise _not_a(text, f"a number of seconds above 0 and at most {TIME_S:.0f}")
    return value


def architecture(text: str) -> str:
    if not re.fullmatch(r"sm_[0-9]{2,3}[a-z]?", text):
        raise _not_a(text, "an architecture, such as sm_80, sm_90, sm_100")
    return text


def address(text: str) -> str:
    if not re.fullmatch(r"([0-9A-Za-z.-]+:|\[[0-9A-Fa-f:]+\]:)?[0-9]{1,5}", text):
        raise _not_a(text, "a port or HOST:PORT, such as 8000 or 0.0.0.0:8000")
    if int(text.rpartition(":")[2]) > 65535:
        raise _not_a(text, "a port up to 65535")
    return text


def ranks(text: str) -> int:
    return _whole(text, 2, RANKS, f"a number of processes from 2 to {RANKS}")


def seed(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or abs(int(text)) > LARGEST_INTEGER:
        raise _not_a(text, f"a whole number between {-LARGEST_INTEGER} and {LARGEST_INTEGER}")
    return int(text)


TELEMETRY = re.compile(r"on|off|[0-9]{1,4}|(GPU|MIG)-[a-zA-Z0-9_./-]{1,90}")
PROFILES = ("on", "off", "all")


def telemetry(text: str) -> str:
    if not TELEMETRY.fullmatch(text):
        raise _not_a(text, "on, off, or a GPU's index or UUID (nvidia-smi -L lists them)")
    return text


def repetitions(text: str) -> int:
    return _whole(text, 2, 9999, "a number of runs, 2 or more")


def count(text: str) -> int:
    return _whole(text, 1, 9999, "a number of threads, 1 or more")


def operations(text: str) -> int:
    return _whole(text, 1, VARIANTS, f"a number of operations from 1 to {VARIANTS}")


def steps(text: str) -> int:
    return _whole(text, 1, 10**12 - 1, "a number of steps, 1 or more")


def _whole(text: str, least: int, most: int, what: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,11}", text) or not least <= int(text) <= most:
        raise _not_a(text, what)
    return int(text)


def _not_a(text: str, what: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"{shown(text)} is not {what}")


def file_name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("'': write the name of a file")
    return text


def path(text: str) -> Path:
    """A file that results name, so that its name must be text."""
    file_name(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{shown(text)}: write a path in UTF-8") from None
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
        raise argparse.ArgumentTypeError(f"{shown(text)}: write FILE.json, in a folder that exists")
    return file


def speedup(text: str) -> float:
    value = _number(text.removesuffix("x"))
    if not SPEEDUPS[0] <= value <= SPEEDUPS[1]:
        raise _not_a(text, "a speedup, such as 1.2x")
    return value


def least_speedup(text: str) -> tuple[str, float]:
    """A speedup, or VARIANT=SPEEDUP; the name is empty where there is none."""
    name, equals, value = text.rpartition("=")
    if equals and not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{shown(text)}: write 1.2x, or VARIANT=1.2x")
    return name, speedup(value)


def share(text: str) -> float:
    """3%, or the same as a number: 0.03."""
    value = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise _not_a(text, "a share, such as 3%")
    return value


def _number(text: str) -> float:
    """The number, or 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
