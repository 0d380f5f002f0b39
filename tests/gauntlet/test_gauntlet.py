"""Every mistake that looks fast and was met, each caught by the check that its docstring names; and
an honest twin of each.

A cheat says in its last line what catches it, and is judged in a file of its own. Its twin, of the
same name, does something that looks alike and is right: nothing may accuse it. What runs on a GPU
alone has its lines in `benchmarks/device/verify.py`.
"""

from itertools import chain
from pathlib import Path

import pytest
from switches import SWITCHES, holder_of
from tables import files_of

pytest_plugins = ("judged_runs",)
FOLDER = Path(__file__).parent
FILES, TWINS = files_of(FOLDER / "cheats")
CHEATS = {name: file for file in FILES for name in file.variants}
HONEST = {name: file for file in TWINS for name in file.variants}
QUICK = ("constant_answer",)
"""Files of twins that are looked at in every test run; of the others the cheats are."""
PROFILED = ("silent_fallback",)
"""What a profile alone shows."""
OF_EACH_KIND = {
    *("recomputed_after_1_ms", "names_the_bias_alone", "lazy_output"),
    *("half_is_zeros", "constant_answer", "claims_four_times_the_items"),
    *("kept_after_sixty", "cache_where_no_other_is"),
}
"""Cheats that every test run looks at, one for each check; the others are slow."""


def slow(value, *, when):
    return pytest.param(value, marks=[pytest.mark.slow] * when, id=getattr(value, "name", value))


def checks_of(name):
    """The checks that catch a cheat, as its docstring names them."""
    text = CHEATS[name].docstrings[name].rpartition("Caught by: ")[2]
    return set(" ".join(text.split()).split(" or "))


def caught_by(check):
    """Names of the cheats that a check catches."""
    return {name for name in CHEATS if check in checks_of(name)}


MEETING = caught_by("variants alone")
"""Variants that change what others take: it takes processes in which each is alone, on a machine at
rest.
"""
WAITED_FOR = "being waited for"
"""Nothing is wrong with it but the time that it would have had."""
SAID = "said as "
AT_RANDOM = (False, True, True, True)
"""Runs of a check that looks at random, whether whole: most are caught by a brief one, and beside
other work a run makes fewer steps to look at.
"""


def test_every_cheat_has_a_twin():
    assert CHEATS.keys() <= HONEST.keys()
    assert CHEATS.keys() >= OF_EACH_KIND
    assert len(CHEATS) >= 65


def test_every_switch_of_a_check_finds_what_it_switches_off():
    for path in chain.from_iterable(SWITCHES.values()):
        holder, attribute = holder_of(path)
        assert hasattr(holder, attribute), path


@pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["smoke", "whole"]
)
@pytest.mark.parametrize("name", [slow(name, when=name not in OF_EACH_KIND) for name in CHEATS])
def test_a_cheat_is_caught_by_the_check_named(run, module_lab, name, whole):
    cheat = CHEATS[name]
    named = checks_of(name)
    runs = AT_RANDOM if "timed steps" in named and not whole else (whole,)
    takes_figures = name in MEETING
    if takes_figures:
        runs = (True,) * 3
    options = {"profile": name in PROFILED, "default": takes_figures}
    file = module_lab.write(f"{name}.py", cheat.text(only=name))
    verdicts = set()
    for whole_run in runs:
        result = run(file, whole=whole_run, **options)[name]
        verdicts.add(result.comparison.get("verdict"))
        caught = result.caught_by | {f"{SAID}{code}" for code in result.said}
        if caught & named:
            break
    if takes_figures and not caught & named and verdicts == {"inconclusive"}:
        pytest.skip("the machine is too busy for a verdict: nothing is said that is not so")
    if named == {WAITED_FOR}:
        assert result.caught_by == set(), result
        assert result.speedup < 4, result  # and 50 or more where it is not waited for
        return
    assert caught & named, result
    if result.caught_by & named:
        # A check that proves nothing leaves the speedup, and the word "unchecked" in place of a
        # verdict.
        assert (
            result.comparison.get("speedup") is None or result.comparison["verdict"] == "unchecked"
        ), result


@pytest.mark.parametrize("file", [slow(file, when=file.name not in QUICK) for file in TWINS])
def test_the_twins_of_a_file_are_accused_of_nothing(run, module_lab, file):
    results = run(module_lab.write(f"{file.name}.py", file.text()))
    assert list(results) == file.variants
    for result in results.values():
        result.is_accused_of_nothing()
