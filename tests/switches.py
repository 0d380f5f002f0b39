"""Checks of a worker, each with what is put in its place to be without it: for
`benchmarks/checks_alone.py`.
"""

from importlib import import_module

from gpulab.core.events import Checked

SWITCHED_OFF = "GPULAB_TEST_SWITCHED_OFF"
"""A variable of the environment: names of switches, with commas between them."""


def _nothing(*arguments, **named):
    pass


def _any_output(checker, name, build, output):
    if name == checker.baseline and not checker._reference:
        checker._set_reference(output)
    return Checked(variant=name, ok=True)


def _no_block(checks, candidate):
    checks._block = None


_CHECKER, _OTHER_VALUES = (
    "features.checks.worker.Checker",
    "features.checks.other_values.OtherValues",
)
_TIMED, _STEP_TIMES = "features.checks.timed_steps.TimedChecks", "features.checks.replay.StepTimes"
SWITCHES = {
    "outputs": {f"{_CHECKER}._against_reference": _any_output},
    "other seed": {f"{_OTHER_VALUES}._refer": _nothing},
    "cases": {f"{_OTHER_VALUES}.try_cases": _nothing},
    "timed blocks": {f"{_TIMED}.prepare": _no_block},
    "alone": {f"{_STEP_TIMES}.more_alone_s": 0.0},
    "new values": {f"{_STEP_TIMES}.more_on_new_s": 0.0},
    "state between steps": {f"{_TIMED}._check_state": _nothing},
    "draws": {f"{_TIMED}._draws_once": lambda checks, build: False},
    "null answers": {f"{_CHECKER}._try_null_answers": _nothing},
    "gradients": {f"{_CHECKER}._compare_gradients": _nothing},
    "effect and layout": {f"{_OTHER_VALUES}._note_without_effect": _nothing},
    "poison": {"features.checks.worker.poison_output": _nothing},
    "settings": {"engine.build.settings.put_back": lambda before: []},
}
"""By name: what stands in the place of what, by its path within `gpulab`."""


def switch_off(*names):
    """In this process, from now on: before the lab looks at what it consists of. Names of no switch
    change nothing.
    """
    for name in names:
        for path, value in SWITCHES.get(name, {}).items():
            holder, attribute = holder_of(path)
            getattr(holder, attribute)  # AttributeError where the check has another name by now
            setattr(holder, attribute, value)


def holder_of(path):
    """The module or class that an attribute is of, and its name there."""
    *parts, attribute = path.split(".")
    inner = [part for part in parts if part[0].isupper()]
    holder = import_module(".".join(["gpulab", *parts[: len(parts) - len(inner)]]))
    for part in inner:
        holder = getattr(holder, part)
    return holder, attribute
