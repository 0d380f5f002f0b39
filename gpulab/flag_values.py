"""Values of flags, from their text; each says what to write instead."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from gpulab.declared import shown
from gpulab.limits import LARGEST_INTEGER, SPEEDUPS, TIME_S, VARIANTS


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{shown(text)}: write NAME=VALUE")
    return name, value


def seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value <= TIME_S:
        message = f"{shown(text)} is not a number of seconds above 0, and at most {TIME_S:.0f}"
        raise argparse.ArgumentTypeError(message)
    return value


def architecture(text: str) -> str:
    if not re.fullmatch(r"sm_[0-9]{2,3}[a-z]?", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not an architecture, such as sm_80, sm_90, sm_100")
    return text


def seed(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or abs(int(text)) > LARGEST_INTEGER:
        message = f"{shown(text)} is not a whole number between {-LARGEST_INTEGER} and {LARGEST_INTEGER}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def telemetry(text: str) -> str:
    if not re.fullmatch(r"on|off|[0-9]{1,4}|(GPU|MIG)-[a-zA-Z0-9_./-]{1,90}", text):
        message = f"{shown(text)} is not on, off, or a GPU's index or UUID (nvidia-smi -L lists them)"
        raise argparse.ArgumentTypeError(message)
    return text


def repetitions(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text) or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number of runs, 2 or more")
    return int(text)


def count(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number of threads, 1 or more")
    return int(text)


def operations(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,2}", text) or int(text) > VARIANTS:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number of operations from 1 to {VARIANTS}")
    return int(text)


def steps(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,11}", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number of steps, 1 or more")
    return int(text)


def path(text: str) -> Path:
    """A file that results name, so that its name must be text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{shown(text)}: write a path in UTF-8") from None
    return Path(text)


def trace(text: str) -> Path:
    file = path(text)
    try:
        fits = file.suffix == ".json" and file.absolute().parent.is_dir()
    except OSError:  # a name that is too long, or the folder one stands in was deleted
        fits = False
    if not fits:
        raise argparse.ArgumentTypeError(f"{shown(text)}: write FILE.json, in a folder that exists")
    return file


def speedup(text: str) -> float:
    value = _number(text.removesuffix("x"))
    if not SPEEDUPS[0] <= value <= SPEEDUPS[1]:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a speedup, such as 1.2x")
    return value


def width(text: str) -> float:
    """0.2%, or the same as a share: 0.002."""
    value = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a share of a speedup, such as 0.2%")
    return value


def _number(text: str) -> float:
    """The number, or 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
