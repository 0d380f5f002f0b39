"""Outputs of low precision that are further from the baseline than is allowed: held against the
baseline in float64.
"""

import pytest
import torch
from checker_bench import Bench
from torch import nn
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

from gpulab.engine.build.agreement import error_of
from gpulab.engine.measure.outputs import read, step
from gpulab.engine.processes.failure import WrongOutputError
from gpulab.features.checks.wider import wider_output
from gpulab.report.sentences import is_doubt
from gpulab.scenario import Variant, Work

WIDTH, LAYERS = 64, 12


def deep(layer):
    """Layers whose errors add up to more than two outputs may differ by."""

    def make_work():
        weights = [torch.randn(WIDTH, WIDTH).div(WIDTH**0.5).bfloat16() for _ in range(LAYERS)]
        x = torch.randn(32, WIDTH).bfloat16()

        def forward():
            y = x
            for weight in weights:
                y = layer(y, weight)
            return y.bfloat16()

        return Work(forward, inputs=(x, weights), dtype="bf16")

    return make_work


def as_it_is(y, weight):
    return layer_norm(gelu(linear(y, weight)), (WIDTH,))


def in_float32(y, weight):
    return as_it_is(y.float(), weight.float())


def coarser(y, weight):
    return as_it_is(y, weight).float().mul(16).round().div(16).bfloat16()


def test_who_is_nearer_to_float64_than_the_baseline_is_right_and_who_is_farther_is_wrong():
    bench = Bench()
    bench.check("baseline", deep(as_it_is))
    checked = bench.check("precise", deep(in_float32))
    assert checked.ok
    assert checked.error > 2e-2
    assert bench.codes == [("near_to_float64", "precise")]
    (near,) = bench.checker.findings
    assert near.values["own"] < near.values["baseline"]
    assert not is_doubt(near)
    with pytest.raises(WrongOutputError) as raised:
        bench.check("coarser", deep(coarser))
    assert raised.value.finding.code == "farther_from_float64"
    assert raised.value.finding.values["own"] > 1.25 * raised.value.finding.values["baseline"]


def outside_of_torch(error):
    """A product of NumPy, which no mode of torch sees."""

    def make_work():
        x = torch.randn(WIDTH, WIDTH)

        def product():
            return torch.from_numpy(x.numpy() @ x.numpy()) * (1 + error)

        return Work(product, inputs=x, dtype="bf16")

    return make_work


def test_a_baseline_that_does_not_run_in_float64_leaves_a_doubt_and_no_more_than_that():
    bench = Bench()
    bench.check("baseline", outside_of_torch(0.0))
    assert bench.check("near", outside_of_torch(0.03)).ok
    assert bench.codes == [("maybe_rounding", "near")]
    assert is_doubt(bench.checker.findings[0])
    with pytest.raises(WrongOutputError) as raised:
        bench.check("far", outside_of_torch(0.1))
    assert raised.value.finding.code == "relative_error"


@pytest.fixture(autouse=True)
def nothing_compiled():
    """Other tests of this process look at what was compiled so far."""
    yield
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def low(*shape):
    return torch.randn(*shape).bfloat16()


def compiled():
    layer, x = nn.Linear(8, 8).bfloat16(), low(4, 8)
    call = torch.compile(layer, backend="eager")
    return Work(torch.no_grad()(lambda: call(x)), inputs=x)


def with_a_cache():
    keys, query = torch.zeros(1, 2, 8, 4).bfloat16(), low(1, 2, 1, 4)
    place = torch.tensor([5])

    def attend():
        keys.index_copy_(2, place, query)
        return scaled_dot_product_attention(query, keys, keys * 2)

    return Work(torch.inference_mode()(attend), inputs=query, state=keys)


def into_a_buffer():
    x, out = low(8, 8), low(8, 8)
    return Work(lambda: torch.mm(x, x, out=out), inputs=x, output=out)


def under_autocast():
    layer, x = nn.Linear(8, 8), torch.randn(4, 8)
    context = torch.autocast("cpu", torch.bfloat16)
    return Work(torch.no_grad()(lambda: layer(x)), inputs=x, context=context)


def as_a_number():
    x = low(8, 8)
    return Work(lambda: {"sum": x.exp().sum().item(), "all": x.float().softmax(0).bfloat16()})


def of_views():
    x = low(8, 8)
    transposed = x.mT[2:]
    return Work(lambda: transposed @ x, inputs=x)


@pytest.mark.parametrize(
    "make_work", [compiled, with_a_cache, into_a_buffer, under_autocast, as_a_number, of_views]
)
def test_a_step_runs_in_float64_and_leaves_nothing_behind(make_work):
    builder = Bench().builder
    build = builder.build(Variant(name="baseline", function=lambda lab: make_work()))
    builder.first_step(build)
    narrow = [tensor.clone() for tensor in read(build, step(builder, build))]
    wide = wider_output(builder, build)
    assert {tensor.dtype for tensor in wide} == {torch.float64}
    assert 0 < error_of(narrow, wide) < 0.02
    assert error_of(read(build, step(builder, build)), narrow) == 0


@pytest.mark.parametrize(
    "make_work", [lambda: outside_of_torch(0.0)(), lambda: Work(lambda: low(2).sum().data_ptr())]
)
def test_what_leaves_torch_does_not(make_work):
    builder = Bench().builder
    build = builder.build(Variant(name="baseline", function=lambda lab: make_work()))
    assert wider_output(builder, build) is None
