"""The checks of state that moves on, and of a baseline that is at fault itself."""

import itertools

import pytest
import torch
from checker_bench import Bench, N, of_operands

from gpulab.engine.processes.failure import UncheckedError, WrongOutputError
from gpulab.scenario import Work


def forgets_its_state(a, b):
    counter = torch.zeros(1)
    return Work(lambda: a @ b * counter.add_(1), inputs=(a, b))


def test_state_that_is_not_named_is_noted_and_compared_after_as_many_steps():
    bench = Bench()
    bench.check("baseline", of_operands(lambda a, b: Work(lambda: a @ b, inputs=(a, b))))
    with pytest.raises(WrongOutputError) as raised:
        bench.check("suspect", of_operands(forgets_its_state))
    # the second step's, against the first one's
    assert raised.value.finding.values["error"] == pytest.approx(1)
    assert bench.codes == [("state_not_named", "suspect")]


DATA = torch.arange(1.0, 9.0)


def batches():
    return itertools.cycle(DATA.tolist())


def adds_in_place():
    weights, loader = torch.randn(256), batches()
    return Work(lambda: weights.add_(next(loader)), state=weights)


def adds_to_a_copy():
    weights, loader = torch.randn(256), batches()
    return Work(lambda: weights + next(loader))


def adds_the_same_batch():
    weights, batch = torch.randn(256), next(batches())
    return Work(lambda: weights + batch)


def test_a_loader_that_goes_on_is_compared_on_fresh_builds():
    bench = Bench()
    bench.check("restored", adds_in_place)
    assert bench.check("same", adds_in_place).error == 0
    assert bench.check("functional", adds_to_a_copy).error == 0
    with pytest.raises(WrongOutputError):
        bench.check("cheats", adds_the_same_batch)
    assert bench.codes == [
        ("no_inputs_named", "restored"),
        ("state_not_restored", "restored"),
        ("state_not_restored", "same"),
        ("state_not_named", "functional"),
    ]


def training(*, set_to_none):
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.rand(8, 16)

    def step():
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Work(step, inputs=data, state=(model, optimizer), items=8)


def test_state_that_an_optimizer_makes_in_its_first_step_is_restored():
    bench = Bench()
    bench.check("baseline", lambda: training(set_to_none=True))
    assert bench.check("suspect", lambda: training(set_to_none=False)).error == 0
    assert bench.codes == []


def fills_with_zeros(a, b):
    out = torch.empty(N, N)
    return Work(lambda: out.zero_(), inputs=(a, b))


def returns_a_stale_buffer(a, b):
    cached = a @ b
    return Work(lambda: cached, inputs=(a, b))


def computes_in_the_build(a, b):
    cached = a @ b
    return Work(cached.clone, inputs=(a, b))


def changes_its_input(a, b):
    def step():
        c = a @ b
        a.mul_(1.0001)
        return c

    return Work(step, inputs=(a, b))


@pytest.mark.parametrize(
    ("make_work", "error", "code"),
    [
        (
            lambda a, b: Work(lambda: a @ b * float("nan"), inputs=(a, b)),
            WrongOutputError,
            "baseline_is_nan",
        ),
        (changes_its_input, WrongOutputError, "changes_inputs"),
        (returns_a_stale_buffer, WrongOutputError, "does_not_write_its_output"),
        (lambda a, b: Work(lambda: None, inputs=(a, b)), UncheckedError, "returns_nothing"),
    ],
)
def test_a_baseline_that_is_wrong_itself_is_no_baseline(make_work, error, code):
    bench = Bench()
    with pytest.raises(error) as raised:
        bench.check("baseline", of_operands(make_work))
    assert raised.value.finding.code == code
    assert bench.codes == []


def of_a_random_size(a, b):
    data = torch.rand(int(torch.randint(100, 10**6, ())))
    return Work(lambda: data * 2, inputs=data)


@pytest.mark.parametrize(
    ("make_work", "codes"),
    [
        (lambda a, b: Work(lambda: a @ b), ["no_inputs_named"]),
        (computes_in_the_build, ["output_ignores_change"]),
        (fills_with_zeros, ["baseline_is_zeros", "output_ignores_change"]),
        (lambda a, b: Work(lambda: torch.sign(a), inputs=a), []),
        (lambda a, b: Work(lambda: DATA * 2, inputs=DATA), ["seed_changes_nothing"]),
        (of_a_random_size, ["seed_changes_shapes"]),
    ],
)
def test_a_baseline_with_which_little_is_proved_is_noted(make_work, codes):
    bench = Bench()
    assert bench.check("baseline", of_operands(make_work)).ok
    assert [code for code, _ in bench.codes] == codes
