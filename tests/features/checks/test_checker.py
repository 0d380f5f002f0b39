"""The checks of outputs, inputs, state and settings, in this process: what each cheat, each mistake,
and a baseline that is at fault itself is told.
"""

import itertools
import sys

import numpy as np
import pytest
import torch
from checker_bench import STEPS, Bench, N, of_operands
from found import finding
from torch.overrides import TorchFunctionMode

from gpulab.engine.build.settings import modes
from gpulab.engine.processes.failure import RefusedError, UncheckedError, WrongOutputError
from gpulab.scenario import Work


@pytest.fixture
def bench():
    """With the product of two random matrices as its baseline."""
    bench = Bench()
    bench.check("baseline", of_operands(lambda a, b: Work(lambda: a @ b, inputs=(a, b))))
    assert bench.codes == []
    return bench


def fills_with_zeros(a, b):
    out = torch.empty(N, N)
    return Work(lambda: out.zero_(), inputs=(a, b))


def returns_a_stale_buffer(a, b):
    cached = a @ b
    return Work(lambda: cached, inputs=(a, b))


def computes_half(a, b):
    cached = a @ b

    def step():
        torch.mm(a[:32], b, out=cached[:32])
        return cached

    return Work(step, inputs=(a, b))


def computes_in_the_build(a, b):
    cached = a @ b
    return Work(cached.clone, inputs=(a, b))


def computes_one_operand_in_the_build(a, b):
    transposed = b.T.contiguous()
    return Work(lambda: a @ transposed.T, inputs=(a, b))


def is_off_in_one_element(a, b):
    def step():
        c = a @ b
        c[3, 3] += 0.05
        return c

    return Work(step, inputs=(a, b))


def wobbles(a, b):
    """The product, off to either side in turn: two of them differ by more than the tolerance."""
    signs = itertools.cycle((1, -1))
    return Work(lambda: a @ b * (1 + next(signs) * 9e-5), inputs=(a, b))


def changes_its_input(a, b):
    def step():
        c = a @ b
        a.mul_(1.0001)
        return c

    return Work(step, inputs=(a, b))


def is_wrong_later(a, b):
    count = itertools.count()
    return Work(lambda: a @ b * (2 if next(count) > STEPS else 1), inputs=(a, b))


ALL_WRONG = ("relative_error", {"error": pytest.approx(1, rel=0.01), "allowed": 1e-4})
DOES_NOT_WRITE = ("does_not_write_its_output", {})
WRONG = {
    returns_a_stale_buffer: DOES_NOT_WRITE,
    computes_half: DOES_NOT_WRITE,
    computes_one_operand_in_the_build: ("ignores_its_inputs", {"input": 2, "inputs": 2}),
    (lambda a, b: Work(lambda: (a @ b)[: N // 2], inputs=(a, b))): (
        "element_counts_differ",
        {"elements": N * N // 2, "baseline": N * N},
    ),
    (lambda a, b: Work(lambda: (a @ b) * float("nan"), inputs=(a, b))): ("output_has_nan", {}),
    (lambda a, b: Work(lambda: (a @ b) / 0, inputs=(a, b))): ("relative_error", {"error": None}),
    is_off_in_one_element: ("one_element_off", {"largest": pytest.approx(0.05, rel=0.1)}),
    (lambda a, b: Work(lambda: (a.bfloat16() @ b.bfloat16()).float(), inputs=(a, b))): (
        "relative_error",
        {"error": pytest.approx(0.003, abs=0.002), "allowed": 1e-4},
    ),
    is_wrong_later: ALL_WRONG,
}


@pytest.mark.parametrize("make_work", WRONG)
def test_wrong_output_is_told_by_what_is_wrong_with_it(bench, make_work):
    with pytest.raises(WrongOutputError) as raised:
        bench.check("suspect", of_operands(make_work))
    code, values = WRONG[make_work]
    assert raised.value.finding.code == code
    assert {name: raised.value.finding.values[name] for name in values} == values


def out_is_given(a, b):
    out = torch.empty(N, N)
    return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b))


def output_is_a_function(a, b):
    out = torch.empty(N, N)
    return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b), output=lambda: out)


RIGHT = [
    lambda a, b: Work(lambda: (b.T @ a.T).T, inputs=(a, b)),
    lambda a, b: Work(lambda: (a.bfloat16() @ b.bfloat16()).float(), dtype="bf16", inputs=(a, b)),
    wobbles,
    out_is_given,
    output_is_a_function,
]


@pytest.mark.parametrize("make_work", RIGHT)
def test_right_output_passes(bench, make_work):
    checked = bench.check("suspect", of_operands(make_work))
    assert checked.ok
    assert checked.error <= checked.tolerance
    assert bench.codes == []


@pytest.mark.parametrize("shape", [(N * N,), (N // 2, 2 * N)])
def test_a_dimension_that_is_lost_is_wrong(bench, shape):
    with pytest.raises(WrongOutputError) as raised:
        bench.check(
            "suspect",
            of_operands(lambda a, b: Work(lambda: (a @ b).reshape(shape), inputs=(a, b))),
        )
    values = {"shape": str(list(shape)), "baseline": f"[{N}, {N}]", "place": ""}
    assert raised.value.finding == finding("shapes_differ", **values)


@pytest.mark.parametrize(("size", "both_draw"), [(N, True), (N + 1, None)])
def test_another_number_of_elements_is_not_laid_to_random_numbers(size, both_draw):
    bench = Bench()

    def draws(size, times):
        return lambda: Work(lambda: [torch.rand(size) for _ in range(times)][-1])

    bench.check("baseline", draws(N, 1))
    with pytest.raises(WrongOutputError) as raised:
        bench.check("suspect", draws(size, 2))
    assert raised.value.finding.values.get("both_draw") == both_draw


def sets_while_building(setting):
    def make_work(a, b):
        setting()
        return Work(lambda: a @ b, inputs=(a, b))

    return make_work


def set_tf32():
    torch.backends.cuda.matmul.allow_tf32 = True


def set_precision():
    torch.backends.cuda.matmul.fp32_precision = "tf32"


class Mode(TorchFunctionMode):
    """One that changes nothing, and takes its time."""


REFUSED = [
    (sets_while_building(lambda: Mode().__enter__()), "set_while_building", "torch modes"),
    (
        sets_while_building(lambda: torch.set_default_device("cpu")),
        "set_while_building",
        "torch modes",
    ),
    (
        sets_while_building(set_precision),
        "set_while_building",
        "torch.backends.cuda.matmul.fp32_precision",
    ),
    (sets_while_building(set_tf32), "set_while_building", "torch.backends.cuda.matmul.allow_tf32"),
    (
        sets_while_building(lambda: sys.setprofile(lambda *call: None)),
        "set_while_building",
        "sys.setprofile",
    ),
    (
        sets_while_building(lambda: torch.set_grad_enabled(False)),
        "set_while_building",
        "torch.set_grad_enabled",
    ),
]


@pytest.mark.parametrize(("make_work", "code", "setting"), REFUSED)
def test_a_setting_of_the_process_is_refused_and_restored(bench, make_work, code, setting):
    threads, grad = torch.get_num_threads(), torch.is_grad_enabled()
    precision = torch.backends.cuda.matmul.fp32_precision
    with pytest.raises(RefusedError) as raised:
        bench.check("suspect", of_operands(make_work))
    assert raised.value.finding.code == code
    assert setting in raised.value.finding.values["settings"]
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (threads, grad)
    assert torch.backends.cuda.matmul.fp32_precision == precision
    assert modes() == (0, 0)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (["a text"], finding("inputs_without_tensors", "careless")),
        (
            np.array(["2020-01-01"], "M8[D]"),
            finding("inputs_not_exchanged", "careless", kind="an array of dtype datetime64[D]"),
        ),
    ],
)
def test_inputs_that_cannot_be_changed_are_told_by_what_they_are(bench, inputs, reason):
    bench.check("careless", of_operands(lambda a, b: Work(lambda: a @ b, inputs=inputs)))
    assert bench.checker.findings == [reason]


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
