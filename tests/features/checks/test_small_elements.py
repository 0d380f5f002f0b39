"""What the error of all elements hides: parts that are small beside others, and effects that no
output shows.
"""

import pytest
import torch
from checker_bench import Bench, N

from gpulab.engine.processes.failure import WrongOutputError
from gpulab.scenario import Work


def rows_of(size):
    """The second half of the rows is so small that nothing of it is seen in the error of all."""
    rows = torch.randn(N, N)
    rows[N // 2 :] *= size
    return rows


def doubled(size):
    def make_work():
        rows = rows_of(size)
        return Work(lambda: rows * 2, inputs=rows)

    return make_work


def half_doubled(size):
    def make_work():
        rows = rows_of(size)
        return Work(lambda: torch.cat([rows[: N // 2] * 2, torch.zeros(N // 2, N)]), inputs=rows)

    return make_work


def test_a_part_that_was_not_computed_is_an_error_though_the_norm_hides_it():
    bench = Bench()
    bench.check("baseline", doubled(1e-4))
    with pytest.raises(WrongOutputError) as raised:
        bench.check("suspect", half_doubled(1e-4))
    assert raised.value.finding.code == "one_element_off"


def test_a_part_that_may_be_rounding_is_none():
    bench = Bench()
    bench.check("baseline", doubled(1e-9))
    assert bench.check("suspect", half_doubled(1e-9)).ok


@pytest.mark.parametrize(
    ("tolerance", "codes"),
    [(None, []), (1e-4, []), (5e-4, ["tolerance_widened"]), (0.5, ["tolerance_capped"])],
)
def test_a_tolerance_beyond_that_of_the_dtypes_is_said(tolerance, codes):
    bench = Bench()
    bench.check("baseline", doubled(1.0))

    def named():
        rows = rows_of(1.0)
        return Work(lambda: rows + rows, inputs=rows, tolerance=tolerance)

    bench.check("suspect", named)
    assert [code for code, _ in bench.codes] == codes


def trained(gradient):
    """The loss is returned; what the step leaves in `.grad` is for whoever updates the weights."""

    def make_work():
        weights = torch.randn(N, N, requires_grad=True)
        data = torch.rand(8, N)

        def step():
            weights.grad = None
            loss = (data @ weights).square().mean()
            gradient(loss, weights)
            return loss.detach()

        return Work(step, inputs=data)

    return make_work


def backward(loss, weights):
    loss.backward()


def of_something_else(loss, weights):
    weights.grad = torch.ones(N, N)


def nothing(loss, weights):
    pass


def test_gradients_that_the_baseline_leaves_are_an_effect_of_the_step():
    bench = Bench()
    bench.check("baseline", trained(backward))
    bench.check("same", trained(lambda loss, weights: (loss * 1).backward()))
    assert bench.codes == []
    with pytest.raises(WrongOutputError) as raised:
        bench.check("suspect", trained(of_something_else))
    assert raised.value.finding.code == "gradient_differs"
    bench.check("forward", trained(nothing))
    assert bench.codes == [("gradients_not_left", "forward")]


def stored(transposed):
    """The same gradient, of a parameter that is square and lies the other way round."""

    def make_work():
        data, weights = torch.rand(8, N), torch.randn(N, N)
        parameter = (weights.t().contiguous() if transposed else weights).requires_grad_()

        def step():
            parameter.grad = None
            loss = (data @ (parameter.t() if transposed else parameter)).square().mean()
            loss.backward()
            return loss.detach()

        return Work(step, inputs=data)

    return make_work


def test_gradients_of_parameters_that_are_not_alike_are_not_compared():
    bench = Bench()
    bench.check("baseline", stored(transposed=False))
    assert bench.check("transposed", stored(transposed=True)).ok
    assert bench.codes == []
