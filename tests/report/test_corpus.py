"""The report of every recorded run equals the stored one, in every field: who changes one says so,
and stores it anew.
"""

import json
import math

import pytest
import recorded


def compare(old, new, path=""):
    """Yield what differs between two documents, at any depth."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            inner = f"{path}.{name}".lstrip(".")
            if name not in new:
                yield f"{inner} is missing"
            elif name not in old:
                yield f"{inner} is new"
            else:
                yield from compare(old[name], new[name], inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from compare(old_item, new_item, f"{path}[{number}]")
    elif not same_value(old, new):
        yield f"{path} was {old!r} and is {new!r}"


def same_value(old, new):
    """Equal; of numbers to nine digits, since sums may be made in another order."""
    numbers = all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in (old, new)
    )
    return (
        math.isclose(old, new, rel_tol=1e-9) if numbers else type(old) is type(new) and old == new
    )


@pytest.mark.parametrize("name", recorded.ALL)
def test_every_field_is_as_it_was(name, tmp_path):
    old, new = recorded.stored_reports()[name], recorded.report_json(name, tmp_path)
    if json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True):  # takes a tenth as long
        assert list(compare(old, new)) == []


def test_every_stored_report_is_of_a_run_file():
    assert recorded.stored_reports().keys() == set(recorded.ALL)


def test_a_difference_would_be_seen():
    old = {"seed": 1, "same": "", "stopped": None, "variants": [{"name": "a", "items": 1.0}]}
    assert list(compare(old, {**old, "variants": [{"name": "a", "items": 1.0 + 1e-12}]})) == []
    for change, difference in (
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"seed": True}, "seed was 1 and is True"),
        ({"stopped": "width"}, "stopped was None and is 'width'"),
        (
            {"variants": [{"name": "a", "items": 1.0 + 1e-8}]},
            "variants[0].items was 1.0 and is 1.00000001",
        ),
        ({"variants": [{"name": "a"}]}, "variants[0].items is missing"),
        ({"variants": []}, "variants was [{'name': 'a', 'items': 1.0}] and is []"),
        ({"another": 0}, "another is new"),
    ):
        assert list(compare(old, {**old, **change})) == [difference]
