"""What an author declares is checked alike in a list and in the worker, where values may be any
object.
"""

import pytest

from gpulab.core.limits import VARIANTS
from gpulab.scenario import Scenario, ScenarioError, Variant


class _Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"params": {"n": float("nan")}}, "params= maps 'n' to nan: write a finite number"),
        (
            {"params": {"n": 10**5000}},
            "params= maps 'n' to a whole number beyond 9223372036854775807",
        ),
        ({"params": {"n": _Unprintable()}}, "and 'n' to some _Unprintable"),
        ({"params": {"../../x": 1}}, "holds '../../x': write a name that an argument can have"),
        (
            {"params": {f"n{number}": 1 for number in range(101)}},
            "params= has 101 names: at most 100",
        ),
        ({"params": [("n", 1)]}, r"params=\[\('n', 1\)\] is a list: write a dict"),
        ({"params": {"n": 1}, "sweep": {"n": (1,) * 201}}, "has 201 values of 'n': write 1 to 200"),
        ({"env": {"A=B": "c"}}, "holds 'A=B': a name has no '='"),
        ({"terms": "gemm"}, r"terms='gemm' is a string: write a tuple, \('gemm',\)"),
        ({"terms": ("gemm",) * 21}, "terms= has 21 terms: at most 20"),
        ({"claim": "x" * 4097}, "claim= is a text of 4097 characters: at most 4096"),
        (
            {"cases": ("free", "hot")},
            "cases='hot' is not one of free, zeros, negative, signs, scales, infinities, nan",
        ),
    ],
)
def test_a_value_that_is_too_much_is_refused_with_what_to_write(keywords, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario("t", **keywords)


def test_variants_are_counted_and_their_names_are_short():
    scenario = Scenario("t")
    for number in range(VARIANTS):
        scenario.add(Variant(f"v{number}"))
    with pytest.raises(ScenarioError, match="more than 200 variants: split the scenario"):
        scenario.add(Variant("one_more"))
    with pytest.raises(ScenarioError, match="at most 100 characters"):
        Scenario("t").add(Variant("v" * 101))
