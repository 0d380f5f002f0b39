"""The flags of one command: how argparse takes them, which mode they choose, and whether it takes them all."""

from __future__ import annotations

import argparse

from gpulab.flags import GROUPS, MODES, Mode


class FlagError(ValueError):
    """A flag that the chosen mode does not take."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add every group of flags to the parser."""
    modes = parser.add_argument_group("what to do").add_mutually_exclusive_group()
    for mode_flag in MODES:
        modes.add_argument(mode_flag.mode, default=argparse.SUPPRESS, **mode_flag.options)
    for title, flags in GROUPS.items():
        group = parser.add_argument_group(title)
        for flag in flags:
            group.add_argument(flag.name, default=argparse.SUPPRESS, **flag.options)


def mode_of(given: argparse.Namespace) -> Mode:
    """The mode that the flags choose; the screen where none does."""
    chosen = next((mode_flag.mode for mode_flag in MODES if mode_flag.is_chosen(given)), Mode.SCREEN)
    return Mode.OBSERVER if chosen == Mode.RUN and hasattr(given, "observer_effect") else chosen


def check_flags(mode: Mode, given: argparse.Namespace) -> None:
    """FlagError where flags were given that the mode would ignore."""
    flags = [flag for flags in GROUPS.values() for flag in flags]
    ignored = [flag for flag in flags if hasattr(given, flag.destination) and mode not in flag.modes]
    if ignored:
        names = ", ".join(flag.name for flag in ignored)
        taking = [other for other in Mode if all(other in flag.modes for flag in ignored)]
        modes = " or ".join(dict.fromkeys(Mode.RUN if other == Mode.OBSERVER else other for other in taking))
        takes = f"; {'it requires' if len(ignored) == 1 else 'they require'} {modes}" if modes else ""
        raise FlagError(f"{mode} does not take {names}{takes}")
