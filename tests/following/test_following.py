"""A guest in a program's house: followed, each of many programs does what it does alone."""

from pathlib import Path

import pytest
from alone_and_followed import differences, prepared, read, run, steps_followed

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
ALWAYS = {"descriptors_closed"}
"""In the default set, with steps that are followed; the others, as one that compiles, are slow."""


def marks_of(name):
    return [] if name in ALWAYS else [pytest.mark.slow]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=marks_of(path.stem)) for path in PROGRAMS],
)
@pytest.mark.timeout(600)
def test_a_followed_program_does_what_it_does_alone(lab, path):
    program = read(path)
    if missing := program.missing():
        pytest.skip(f"without {', '.join(missing)}")
    alone = run(lab, program.command, prepared(program), followed=False)
    followed = run(lab, program.command, prepared(program), followed=True)
    found = differences(alone, followed)
    if found:
        again = run(lab, program.command, prepared(program), followed=False)
        assert alone == again, "the program differs from itself, alone: it shows nothing"
    assert not found, "\n".join(found)
    if path.stem in ALWAYS:
        assert steps_followed(lab)[0]
