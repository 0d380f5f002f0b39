"""What an author declares is checked alike in a list and in the worker, where values may be any
object.
"""

import pytest

from gpulab.core.limits import LARGEST_INTEGER, VARIANTS
from gpulab.scenario import Scenario, ScenarioError, Variant, Work


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
        ({"params": {"n": "\ud800"}}, r"params= maps 'n' to '\\ud800', which holds a surrogate"),
        ({"params": {"n": "x" * 5000}}, "a text of 5000 characters: at most 4096"),
        ({"params": {"n": _Unprintable()}}, "and 'n' to some _Unprintable"),
        ({"params": {"n": [10**5000]}}, "and 'n' to some list"),
        ({"params": {"../../x": 1}}, "holds '../../x': write a name that an argument can have"),
        ({"params": {"lab": 1}}, "cannot hold 'lab'"),
        (
            {"params": {f"n{number}": 1 for number in range(101)}},
            "params= has 101 names: at most 100",
        ),
        ({"params": [("n", 1)]}, r"params=\[\('n', 1\)\] is a list: write a dict"),
        ({"params": {"n": 1}, "sweep": {"n": ()}}, "has 0 values of 'n': write 1 to 200"),
        ({"params": {"n": 1}, "sweep": {"n": (1,) * 201}}, "has 201 values of 'n': write 1 to 200"),
        ({"params": {"n": 1}, "sweep": {"n": (1, 2j)}}, "for 'n' it has 2j"),
        (
            {"params": {"n": 1}, "sweep": {"n": (1, float("inf"))}},
            "has for 'n' inf: write a finite number",
        ),
        ({"env": {"A=B": "c"}}, "holds 'A=B': a name has no '='"),
        ({"env": {"A": "c\0"}}, "neither it nor its value has NUL"),
        ({"claim": "x" * 4097}, "claim= is a text of 4097 characters: at most 4096"),
        (
            {"cases": ("free", "hot")},
            "cases='hot' is not one of free, zeros, negative, signs, scales, infinities, nan",
        ),
        ({"cases": "zeros"}, r"cases='zeros': write a tuple, \('zeros',\)"),
        ({"cases": {"n": 1}, "params": {"n": 2}}, r"cases={'n': 1}: write a tuple"),
        ({"cases": ({"n": 1},)}, "cases= names 'n', which is not in params"),
        (
            {"cases": ({"n": [1]},), "params": {"n": 2}},
            "cases= maps names to bool, int, float, str",
        ),
        ({"claim": "\udfff"}, "claim= is '.udfff', which holds a surrogate"),
    ],
)
def test_a_value_that_is_too_much_is_refused_with_what_to_write(keywords, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario("t", **keywords)


def test_texts_are_one_line():
    scenario = Scenario(
        "a\ntopic", claim="2x\n\nverdict: faster\u202899x", no_effect_reason="it\tis"
    )
    assert (scenario.topic, scenario.claim) == ("a topic", "2x verdict: faster 99x")
    assert scenario.no_effect_reason == "it is"


def test_the_largest_values_are_taken():
    params = {"n": LARGEST_INTEGER, "m": -LARGEST_INTEGER, "x" * 100: "x" * 4096}
    scenario = Scenario("t", params=params, sweep={"n": [1] * 200}, env={"A": None, "B": "=\n"})
    assert scenario.params == params
    assert len(scenario.sweep["n"]) == 200


def test_variants_are_counted_and_their_names_are_short():
    scenario = Scenario("t")
    for number in range(VARIANTS):
        scenario.add(Variant(f"v{number}"))
    with pytest.raises(ScenarioError, match="more than 200 variants: split the scenario"):
        scenario.add(Variant("one_more"))
    with pytest.raises(ScenarioError, match="at most 100 characters"):
        Scenario("t").add(Variant("v" * 101))


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"flops": 10**400}, "flops=1000.* is not a number up to 9223372036854775807"),
        ({"flops": 10**5000}, "flops=some int is not a number up to"),
        ({"bytes": 2**64}, "is not a finite number of 0 or more, up to 9223372036854775807"),
        ({"items": float("nan")}, "is not a finite number of 0 or more"),
        ({"items": 1e-300}, "a positive amount of useful work, 1e-09 or more"),
        ({"tolerance": 1e300}, "is not a finite number of 0 or more"),
    ],
)
def test_amounts_of_work_are_bounded(amounts, message):
    with pytest.raises(ScenarioError, match=message):
        Work(lambda: None, **amounts)
