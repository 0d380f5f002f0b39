"""The time of a variant: of a step, of an item, and the ends of its interval."""

from reports import variant_report

from gpulab.core.estimate import Estimate
from gpulab.core.statuses import Per, Status


def variant(time, items=4.0):
    return variant_report(name="a", status=Status.OK, items=items, time_s=time)


def test_a_time_is_of_a_step_or_of_an_item():
    time = Estimate(value=8.0, low=4.0, high=12.0)
    assert variant(time).time_per(Per.STEP) == time
    assert (
        variant(time).time_per(Per.ITEM)
        == variant(time).time_per_item
        == Estimate(value=2.0, low=1.0, high=3.0)
    )
    assert variant(time, items=None).time_per_item == time
    assert variant(None).time_per_item is None


def test_where_there_is_no_interval_its_ends_are_the_median():
    rough = variant(Estimate(value=8.0)).time_per_item
    assert rough == Estimate(value=2.0)
    assert rough.ends == (2.0, 2.0)
    assert Estimate(value=2.0, low=1.0, high=3.0).ends == (1.0, 3.0)
