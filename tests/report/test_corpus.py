"""The report of every recorded run equals the stored one, in every field: who changes one says so,
and stores it anew.

Reports were stored anew when runs came to spread over processes, after a look at each field that
had changed since the version that wrote the files. These were meant to change:

- intervals are wider where successive epochs, which count as processes in these files, are alike; so are minimum
  detectable effects. No interval became narrower, no median of eight or more epochs moved;
- below eight epochs there is no interval and no verdict, however long builds take, and a time is the median of its
  epochs' medians; the floor is 1 % for all;
- what failed late keeps its comparison, as inconclusive;
- a solo run differs only where it lies outside of what one more process may come to; bytes that are declared for a
  link are not held against the device's memory, and who moves over 1.2x of what it declares hears of it, where it was
  1.25x;
- goodput is of the step without the profiler, and bounds come from evidence;
- new fields, of comparisons for instance trust, sustained and earlier;
- events stand in the report as they came, with type, rank and t (failures, figures, ceilings, memory), and the control
  is a comparison like any other;
- warm_up_s is unknown where the steps of the warm-up's samples were not recorded, and a check that was not recorded was
  not made;
- the check of elapsed time is gone;
- an interval whose ends are over 3x apart is the reason itself, and not an effect that is too small;
- a doubt takes the place of the reason why its check did not run only where it names that as its cause;
- a run of a program has a part of its own, which is null in these files;
- a row of operations has fields for totals, the device, memory, line, module and work, unknown in these files;
- checks that are gone (timer, outputs compared outside, streams and threads) are neither listed nor missed, a comparison that claims nothing
  has no grade, and what a CPU's nearer caches may hold is held against ten times its cache's roof;
- lines of a program are of newer files, a bound that may be a roof's within the intervals says so, and contention that
  hides the cause is too disturbed to judge;
- findings have a share of the step and no bounds, hold by both recordings, and those that nobody can know are gone; what
  a thread of a CPU did not run is waiting, contention, or not running.
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
