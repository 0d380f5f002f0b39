"""A real run on the CPU: ceilings beside it, points below them, and declared work that is looked
into.
"""

import pytest

POINTS = '''
"""Points: of every kind."""
import torch
from gpulab import MiB, Scenario, Work
scenario = Scenario("mine")

@scenario.variant
def cached(lab):
    """Far inside the cache."""
    return _add(MiB // 16)

@scenario.variant(against=None)
def streams(lab):
    """Far beyond it."""
    return _add(8 * MiB)

@scenario.variant(against=None)
def multiplies(lab):
    """A product, of which half the work is declared: of twice the work the device would be too fast."""
    return _product(512)

@scenario.variant(against=None)
def launches(lab):
    """Nothing but calls."""
    a, out = torch.ones(4), torch.empty(4)
    def step():
        for _ in range(50):
            torch.add(a, a, out=out)
    return Work(step, bytes=50 * 48, flops=50 * 4, inputs=a)

@scenario.variant(against=None)
def layers(lab):
    """Small layers: what the host does around them is all there is."""
    model, row = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4)), torch.rand(1, 4)
    return Work(lambda: model(row), bytes=400, flops=64, inputs=row)

@scenario.variant(against=None)
def recurrent(lab):
    """Of a whole recurrent layer torch counts nothing."""
    layer, rows, head = torch.nn.LSTM(32, 32), torch.rand(8, 4, 32), torch.nn.Linear(32, 8)
    return Work(lambda: head(layer(rows)[0]), bytes=10**5, flops=10**6, inputs=rows)

@scenario.variant(against=None)
def closed(lab):
    """Works, and not under a dispatch mode; work without arithmetic."""
    a = torch.rand(1000)
    def step():
        if torch._C._len_torch_dispatch_stack():
            raise RuntimeError("not under a mode")
        return a.clone()
    return Work(step, bytes=8000, inputs=a)

def _add(count):
    a, b, out = (torch.ones(count) for _ in range(3))
    return Work(lambda: torch.add(a, b, out=out), bytes=12 * count, flops=count, inputs=(a, b))

def _product(n):
    a, b, out = (torch.ones(n, n) for _ in range(3))
    return Work(lambda: torch.mm(a, b, out=out), bytes=12 * n * n, flops=n**3, inputs=(a, b))
'''


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def points(module_lab):
    return module_lab.run(module_lab.write("points.py", POINTS), time_s="1")


@pytest.fixture(scope="module")
def roofline(points):
    return {variant["name"]: variant["roofline"] for variant in points.run["variants"]}


def test_each_point_stands_where_its_declared_work_places_it(points, roofline):
    assert (
        roofline["streams"]["flops_per_byte"]
        == roofline["cached"]["flops_per_byte"]
        == pytest.approx(1 / 12)
    )
    assert roofline["multiplies"]["flops_per_byte"] == pytest.approx(512 / 12)
    assert (roofline["multiplies"]["roof"], roofline["multiplies"]["source"]) == (
        "matrix fp32",
        "measured",
    )
    assert (roofline["closed"]["flops_per_byte"], roofline["closed"]["unit"]) == (None, "B/s")
    for name, point in roofline.items():
        variant = points.variant(name)
        amount = variant["bytes"] if point["unit"] == "B/s" else variant["flops"]
        assert point["rate"] == pytest.approx(amount / variant["time_s"]["value"])
        assert point["fraction"] > 0
        assert point["bytes_counted"] is None  # a CPU counts none
    assert "FLOP/byte" in points.stderr


def test_launches_bound_whatever_the_intensity(points, roofline):
    # Other work may take the CPU from a step, which is said; Python's part is not measured.
    assert roofline["launches"]["bound"] in ("launch", "preempted")
    assert roofline["layers"]["bound"] in ("launch", "host", "unexplained", "preempted")


def test_the_same_operation_is_bound_by_memory_or_by_the_cache(points, roofline):
    if points.findings("off_the_cpu") or points.findings("ceilings_not_used"):
        pytest.skip("other processes disturbed the run, which says so")
    assert (roofline["streams"]["bound"], roofline["cached"]["bound"]) == ("memory", "cache")


def test_declared_work_is_compared_with_what_torch_counts(points):
    (finding,) = points.findings("flops_differ")  # of a recurrent layer torch counts nothing
    assert finding["variant"] == "multiplies"
    assert finding["values"] == {"declared": 512**3, "counted": 2 * 512**3}
    assert points.variant("launches")["operations"] == 50


def test_a_step_that_cannot_be_looked_into_is_measured_all_the_same(points, roofline):
    assert points.variant("closed")["status"] == "ok"
    assert points.variant("closed")["operations"] is None
    assert roofline["closed"]["rate"] > 0


def test_ceilings_are_those_that_the_declared_work_needs(points):
    ceilings = {
        (ceiling["roof"], ceiling["kind"]): ceiling
        for ceiling in points.run["ceilings"]["ceilings"]
    }
    assert ceilings["matrix", "fp32"]["source"] == "measured"
    assert ceilings["vector", "fp32"]["source"] == "derived"  # and says so
    assert {kind for _, kind in ceilings}.isdisjoint({"bf16", "fp16"})  # nothing here works in them
    assert {ceiling["source"] for ceiling in ceilings.values()} == {"measured", "derived"}
    # a CPU drifts: it is measured beside each run
    assert not (points.run_file.parent / "cache" / "gpulab").exists()
