"""Which helpers a variant's function calls, of those that not every variant does."""

import pytest

from gpulab.features.code.analysis import variant_code
from gpulab.features.code.view import lines_between, marked_code

VARIANTS = """
@scenario.variant
def first(lab):
    return common(lab)

@scenario.variant(needs=("cuda",))
def second(lab):
    return common(lab) + table[lab]
"""


def helpers(text, names=("first", "second")):
    return {
        name: [(each.name, each.first) for each in code.helpers]
        for name, code in variant_code(VARIANTS + text, names).items()
    }


def test_what_all_variants_call_is_shared_whichever_are_asked_for():
    text = "def common(lab): return deep(lab)\ndef deep(lab): pass\n"
    assert helpers(text) == {"first": [], "second": []}
    assert helpers(text, ("second",)) == {"second": []}
    assert helpers("", ("third",)) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("table = {0: far}\ndef far(): pass\n", [("far", 10)]),
        (
            "table: dict = make(far)\ndef make(): pass\ndef far(): make()\n",
            [("make", 10), ("far", 11)],
        ),
        (
            "class table:\n    def __getitem__(self, key): far()\ndef far(): pass\n",
            [("table", 9), ("far", 11)],
        ),
        ("if x:\n    def table(): 1\nelse:\n    def table(): 2\n", [("table", 10), ("table", 12)]),
        (
            "try:\n    pass\nexcept E:\n    def table(): 1\nfinally:\n    table = table\n",
            [("table", 12)],
        ),
        ("def table(): far()\ndef far(): table()\n", [("table", 9), ("far", 10)]),
        ("def table(): first()\n", [("table", 9)]),
        ("@far\ndef table(): pass\ndef far(f): return f\n", [("table", 9), ("far", 11)]),
        ("def unused(): table()\n", []),
    ],
)
def test_a_helper_is_what_a_variants_names_lead_to(text, found):
    assert helpers(text) == {"first": [], "second": found}


def test_a_nested_helper_is_indented_as_at_the_top():
    code = variant_code(
        VARIANTS + "if x:\n    @jit\n    def table():\n        return 1\n", ("first", "second")
    )
    (helper,) = code["second"].helpers
    assert (helper.first, list(helper.lines)) == (10, ["@jit", "def table():", "    return 1"])


LOOPS = '''
@scenario.variant
def before(lab):
    """Reads."""
    return run(lab)

@scenario.variant
def after(lab):
    """Reads
    and waits.
    """
    for place in range(lab):
        wait()
        read(place)

def run(lab):
    for place in range(lab):
        read(place)
'''


def test_a_line_that_was_put_in_is_the_only_one_marked():
    before, after = marked_code(LOOPS, ("before", "after"), None)
    marked = [[each.code.lines[place] for place in each.changed] for each in after.functions]
    assert marked == [["        wait()"]]
    assert [len(each.changed) for each in before.functions] == [1, 1], "the call, and its def"


@pytest.mark.parametrize("source", ["", "def old(:\n"])
def test_what_cannot_be_read_has_no_functions(source):
    assert variant_code(source, ("old",)) == {}


def test_lines_between_two_variants_are_counted_both_ways_with_their_helpers():
    assert lines_between(LOOPS, ("before", "after"), {}) == (1, 2)
    assert lines_between(LOOPS, ("after", "before"), {}) == (2, 1)
    assert lines_between(LOOPS, ("before", "gone"), {}) is None
    decorated = LOOPS.replace(
        "@scenario.variant\ndef after", "@scenario.variant(needs=())\ndef after"
    )
    assert lines_between(decorated, ("before", "after"), {}) == (1, 2), "a decorator is no effort"
