"""The budget: no folder has more lines of code than `budget.toml` allows it, no file is long that
was not, and who needs more says what goes.
"""

import lines_of_code
import pytest
from lines_of_code import LONG, budget, lines_of_data, today

TEXT = '''"""A docstring
of two lines."""

# a comment
NAMES = (
    "one",  # a line of code all the same
)


def text():
    """Another docstring."""
    return """a string
is code"""
'''


def test_nothing_is_above_its_ceiling():
    found, ceilings = today(), budget()
    above = [
        f"{name} has {lines:,} lines, {lines - ceilings['folders'].get(name, 0):,} above its ceiling"
        for name, lines in found["folders"].items()
        if lines > ceilings["folders"].get(name, 0)
    ]
    above += [
        f"{name} is {lines:,} lines long: more than {ceilings['files'].get(name, LONG):,}"
        for name, lines in found["files"].items()
        if lines > ceilings["files"].get(name, LONG)
    ]
    told = (
        "Say what goes: delete as much, or raise it with --store --raise and say in the commit why."
    )
    assert not above, "\n".join([*above, told])


def test_lines_of_code_are_those_that_do_something():
    assert lines_of_code.lines_of_code(TEXT) == 6
    assert lines_of_data('# why\n\n[table]\nkey = "value"\n') == 2


@pytest.mark.parametrize(("may_raise", "one", "two"), [(False, 5, 0), (True, 9, 4)])
def test_a_ceiling_is_lowered_and_raised_only_when_it_is_asked_for(
    tmp_path, monkeypatch, may_raise, one, two
):
    """What had no ceiling is raised from nothing; what is gone has none any more."""
    monkeypatch.setattr(lines_of_code, "BUDGET", tmp_path / "budget.toml")
    found = {"folders": {"one": 9, "two": 4, "three": 3}, "files": {"long.py": 601}}
    ceilings = {"folders": {"one": 5, "three": 7, "gone": 1}, "files": {"long.py": 700}}
    lines_of_code.store(found, ceilings, may_raise=may_raise)
    folders = {"one": one, "two": two, "three": 3}
    assert budget()["folders"] == {name: lines for name, lines in folders.items() if lines}
    assert budget()["files"] == {"long.py": 601}
