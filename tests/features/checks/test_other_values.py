"""Values of another seed are copied into the inputs, and cases tried: structured inputs stay what
they are.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from checker_bench import Bench, N

from gpulab.core.events import Examined
from gpulab.engine.processes.failure import RefusedError, WrongOutputError
from gpulab.scenario import Work


def checked(baseline, suspect, cases=()):
    """The bench after both."""
    bench = Bench(*cases)
    bench.check("baseline", baseline)
    bench.check("suspect", suspect)
    return bench


def error_of(baseline, suspect, cases=()):
    with pytest.raises((WrongOutputError, RefusedError)) as raised:
        checked(baseline, suspect, cases)
    return raised.value


def data():
    return torch.randn(N, N), torch.randn(N)


def scaled():
    rows, factors = data()
    return Work(lambda: rows * factors, inputs=(rows, factors))


def half_stale():
    rows, factors = data()
    kept = factors.clone()
    return Work(lambda: rows * kept, inputs=(rows, factors))


def prepared_in_the_build():
    """It names less than it reads, and its own build with another seed is right."""
    rows, factors = data()
    prepared = factors.exp()
    return Work(lambda: rows * prepared.log(), inputs=rows)


def named_by_halves():
    rows, factors = data()
    return Work(lambda: rows * factors, inputs=rows)


def from_its_own_seed():
    rows, factors = data()
    mine = torch.zeros(N, N)
    return Work(lambda: rows * factors + 0 * mine, inputs=mine)


@pytest.mark.parametrize(
    ("suspect", "kind", "code", "values"),
    [
        (half_stale, WrongOutputError, "ignores_its_inputs", {"input": 2, "inputs": 2}),
        (from_its_own_seed, RefusedError, "inputs_not_from_the_seed", {}),
    ],
)
def test_what_does_not_follow_the_values_of_another_seed_is_told_by_why(
    suspect, kind, code, values
):
    error = error_of(scaled, suspect)
    assert (type(error), error.finding.code) == (kind, code)
    assert values.items() <= error.finding.values.items()


def with_a_mask():
    rows, mask = torch.randn(N, N), torch.ones(N, N, dtype=torch.bool)
    return Work(lambda: rows.masked_fill(~mask, 0), inputs=(rows, mask))


def without_the_mask():
    rows, mask = torch.randn(N, N), torch.ones(N, N, dtype=torch.bool)
    return Work(lambda: rows * 1, inputs=(rows, mask))


def in_another_form():
    rows, factors = data()
    columns = rows.T.contiguous()
    return Work(lambda: columns.T * factors, inputs=(columns, factors))


def of_parts():
    """Views of the baseline's memory, of which some is NaN."""
    rows, factors = data()
    halves = rows.split(N // 2)
    return Work(lambda: torch.cat([half * factors for half in halves]), inputs=(*halves, factors))


def of_the_raw_data():
    """What the baseline's build makes larger."""
    rows, factors = data()
    return Work(lambda: rows * factors, inputs=(rows, factors))


def of_wide_data():
    rows, factors = data()
    wide = rows.expand(4, N, N).contiguous()
    return Work(lambda: wide[0] * factors, inputs=(wide, factors))


def with_a_zero():
    rows, factors = data()
    zero = torch.zeros(N)
    return Work(lambda: rows * factors + zero, inputs=(rows, factors, zero))


def without_the_zero():
    rows, factors = data()
    return Work(lambda: rows * factors, inputs=(rows, factors, torch.zeros(N)))


def in_a_thread():
    rows, factors = data()

    def step():
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(torch.mul, rows, factors).result() * 1

    return Work(step, inputs=(rows, factors))


@torch.library.custom_op("gpulab_tests::scaled_into", mutates_args=("out",))
def scaled_into(rows: torch.Tensor, factors: torch.Tensor, out: torch.Tensor) -> None:
    torch.mul(rows, factors, out=out)


def by_an_operation_of_its_own():
    rows, factors = data()
    out = torch.empty_like(rows * factors)

    def step():
        scaled_into(rows, factors, out)
        return out * 1

    return Work(step, inputs=(rows, factors))


@pytest.mark.parametrize(
    ("baseline", "suspect", "codes"),
    [
        (scaled, of_parts, []),
        (of_wide_data, of_the_raw_data, []),
        (with_a_zero, without_the_zero, ["input_without_effect"]),
        (scaled, in_a_thread, []),
        (scaled, by_an_operation_of_its_own, []),
        (scaled, named_by_halves, ["inputs_incomplete"]),
        (scaled, prepared_in_the_build, ["inputs_incomplete"]),
        (scaled, in_another_form, ["layout_made_in_build"]),
        (with_a_mask, without_the_mask, ["input_without_effect"]),
    ],
)
def test_what_weakens_what_is_known_of_the_inputs_is_said_and_nobody_refused(
    baseline, suspect, codes
):
    bench = checked(baseline, suspect)
    assert bench.codes == [(code, "suspect") for code in codes]
    doubts = [
        event.reason.code for event in bench.events if isinstance(event, Examined) and event.reason
    ]
    assert doubts == codes


def softmax(n=N):
    rows = torch.randn(n, N)
    return Work(lambda: rows.softmax(1), inputs=rows)


def unshifted(n=N):
    rows = torch.randn(n, N)
    return Work(lambda: rows.exp() / rows.exp().sum(1, keepdim=True), inputs=rows)


def absolute(n=N):
    rows = torch.rand(n, N)
    return Work(lambda: rows.abs().sqrt(), inputs=rows)


def without_abs(n=N):
    rows = torch.rand(n, N)
    return Work(lambda: rows.sqrt(), inputs=rows)


def clamped(n=N):
    rows = torch.rand(n, N)
    return Work(lambda: rows.nan_to_num(0, 0, 0) * 2, inputs=rows)


def without_nan(n=N):
    rows = torch.rand(n, N)
    return Work(lambda: rows * 2, inputs=rows)


def ranked(n=N):
    rows = torch.randn(n, N)
    return Work(lambda: rows.argmax(1), inputs=rows)


def last_of_equals(n=N):
    rows = torch.randn(n, N)
    return Work(lambda: N - 1 - rows.flip(1).argmax(1), inputs=rows)


def divided(n=N):
    rows = torch.rand(n, N) + 1
    return Work(lambda: rows / rows.sum(), inputs=rows)


def divided_carefully(n=N):
    rows = torch.rand(n, N) + 1
    return Work(lambda: rows / rows.sum().clamp(min=1e-30), inputs=rows)


def for_one_size(n=N):
    rows = torch.randn(n, N)
    return Work(lambda: rows.softmax(1)[:N], inputs=rows)


def fails_at_other_sizes(n=N):
    rows, out = torch.randn(n, N), torch.zeros(N, N)
    return Work(lambda: out.copy_(rows.softmax(1)).clone(), inputs=rows)


@pytest.mark.parametrize(
    ("baseline", "suspect", "case", "in_case"),
    [
        (softmax, unshifted, "scales", "scales"),
        (absolute, without_abs, "signs", "signs"),
        (clamped, without_nan, "nan", "nan"),
        (clamped, without_nan, "infinities", "infinities"),
        (ranked, last_of_equals, "ties", "ties"),
        (softmax, for_one_size, {"n": 2 * N}, f"n={2 * N}"),
    ],
)
def test_a_variant_that_differs_in_a_case_is_wrong_there(baseline, suspect, case, in_case):
    assert checked(baseline, suspect).codes == []
    error = error_of(baseline, suspect, [case])
    assert (type(error), error.finding.code, error.finding.values["case"]) == (
        WrongOutputError,
        "wrong_in_case",
        in_case,
    )
    assert error.finding.values["fails"] is False


def test_a_variant_that_fails_in_a_case_is_wrong_there():
    assert checked(softmax, fails_at_other_sizes).codes == []
    error = error_of(softmax, fails_at_other_sizes, [{"n": 3}])
    assert (error.finding.code, error.finding.values["case"], error.finding.values["fails"]) == (
        "wrong_in_case",
        "n=3",
        True,
    )


@pytest.mark.parametrize(
    ("baseline", "suspect", "case"),
    [
        (divided, divided_carefully, "zeros"),  # the baseline is not finite
        (fails_at_other_sizes, softmax, {"n": 3}),  # the baseline fails
        (softmax, softmax, "free"),
        (softmax, softmax, {"n": 3}),
    ],
)
def test_a_case_in_which_the_baseline_has_no_answer_is_none_and_those_who_agree_pass(
    baseline, suspect, case
):
    assert checked(baseline, suspect, [case]).codes == []


PAST = 8


def joined_each_time():
    past, key = torch.randn(N, PAST, 4), torch.randn(N, 1, 4)
    return Work(lambda: torch.cat([past, key], 1).cumsum(1), inputs=(past, key))


def written_behind(*, kept=False, as_array=False):
    """Into a cache, which is its state, and of which an input is a view."""

    def make_work():
        past, key = torch.randn(N, PAST, 4), torch.randn(N, 1, 4)
        cache = torch.zeros(N, PAST + 9, 4)
        view = cache[:, 1 : PAST + 1]
        view.copy_(past)
        known = cache[:, 1 : PAST + 2].clone()

        def step():
            cache[:, PAST + 1 : PAST + 2] = key
            rows = known if kept else cache[:, 1 : PAST + 2]
            return torch.cat([rows[:, :PAST], key], 1).cumsum(1)

        given = view.numpy() if as_array else view
        return Work(step, inputs=(given, key), state=cache)

    return make_work


@pytest.mark.parametrize("as_array", [False, True])
def test_an_input_in_memory_of_the_state_has_its_new_values_after_a_restore(as_array):
    assert checked(joined_each_time, written_behind(as_array=as_array)).codes == []
    error = error_of(joined_each_time, written_behind(kept=True, as_array=as_array))
    assert error.finding.code == "ignores_its_inputs"


def mean_near_zero(make_mean, near):
    """The first seed's mean is nearly zero by chance, or another one's."""

    def make_work():
        x = torch.randn(100_000)
        is_first = make_work.builds % 2 == 0
        make_work.builds += 1
        if is_first == (near == "first"):
            x -= x.mean() - 1e-6
        return Work(lambda: make_mean(x), inputs=x)

    make_work.builds = 0
    return make_work


@pytest.mark.parametrize("near", ["first", "other"])
def test_a_mean_that_is_nearly_zero_by_chance_is_not_wrong(near):
    ones = torch.full((100_000,), 1 / 100_000)
    bench = Bench()
    bench.check("baseline", mean_near_zero(lambda x: x.mean(), near))
    assert bench.check("dot", mean_near_zero(lambda x: x @ ones, near)).ok
    with pytest.raises(WrongOutputError):
        bench.check("off", mean_near_zero(lambda x: x.mean() * 1.01, near))
