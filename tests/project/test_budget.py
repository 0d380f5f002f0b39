"""The budget: no folder has more lines of code than `budget.toml` allows it, no file is long that
was not, and who needs more says what goes.
"""

from lines_of_code import LONG, budget, today


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
