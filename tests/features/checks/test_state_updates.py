"""State after equal numbers of steps: what was not updated, and what only rounds differently."""

import pytest
import torch

from gpulab.engine.build import agreement, tensors
from gpulab.features.checks import effects as state_updates
from gpulab.features.checks import null_answers


def trained(steps, *, skip=(), dtype=torch.float32, lr=1e-3, seed=0):
    """State before and after some steps of a model; `skip` are numbers of steps without an
    update.
    """
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    data = torch.randn(16, 32, generator=torch.Generator().manual_seed(seed))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    state = tensors.leaves((model, optimizer))
    before = tensors.copies(state)
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = model(data).square().mean()
        loss.backward()
        if step not in skip:
            optimizer.step()
    return before, tensors.copies(state)


def compared(variant, steps=2, tolerance=1e-4):
    return state_updates.compare_updates(
        *variant, *trained(steps), steps=steps, tolerance=tolerance
    )


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 2e-2)])
def test_the_same_training_passes_in_lower_precision_too(steps, dtype, tolerance):
    updates = compared(trained(steps, dtype=dtype), steps, tolerance)
    assert updates.reason is None
    assert updates.compared == 16


@pytest.mark.parametrize("lr", [1e-3, 1e-7])
@pytest.mark.parametrize("steps", [1, 2])
def test_training_without_its_update_is_told_however_small_the_update_is(steps, lr):
    before, after = trained(steps, lr=lr)
    updates = state_updates.compare_updates(
        *trained(steps, skip=range(steps), lr=lr), before, after
    )
    assert updates.reason.code == "state_not_updated"


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_updates_by_another_learning_rate_are_told(steps):
    assert compared(trained(steps, lr=0.7e-3), steps).reason.code == "state_differs"


@pytest.mark.parametrize("steps", [2, 3])
def test_one_of_some_updates_left_out_is_told(steps):
    assert compared(trained(steps, skip=(steps - 1,)), steps).reason.code == "state_differs"


def test_state_in_another_order_is_matched_and_what_is_not_there_is_not_compared():
    before, after = trained(1)
    reversed_state = (before[::-1], after[::-1])
    updates = state_updates.compare_updates(*reversed_state, before, after)
    # moments begin all alike
    assert (updates.compared, updates.error, updates.reason) == (4, 0.0, None)
    assert state_updates.compare_updates(before[:2], after[:2], before, after).compared == 2
    assert (
        state_updates.compare_updates([torch.rand(3)], [torch.rand(3)], before, after).compared == 0
    )


@pytest.mark.parametrize("filled", [0, 2])
def test_a_cache_in_another_layout_is_not_compared(filled):
    keys = torch.zeros(2, 4, 16, 8)
    keys[:, :, :filled] = torch.randn(2, 4, filled, 8)
    after = keys.clone()
    after[:, :, filled] = torch.randn(2, 4, 8)
    tokens_first = [keys.transpose(1, 2).contiguous()], [after.transpose(1, 2).contiguous()]
    updates = state_updates.compare_updates(*tokens_first, [keys], [after])
    assert (updates.compared, updates.reason) == (0, None)


def test_parameters_in_one_row_are_compared_as_they_are():
    before = torch.randn(8, 16)
    rows = [before.reshape(-1)], [before.reshape(-1) * 0.9]
    updates = state_updates.compare_updates(*rows, [before], [before * 0.5])
    assert updates.reason.code == "state_differs"


def passes(output, inputs=(), tolerance=None):
    def agree(answer, reference):
        return agreement.agree(answer, reference, tolerance=tolerance).ok

    return {
        name for name, passed in null_answers.passing([output], inputs, agree).items() if passed
    }


X = torch.randn(32, 48, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("output", "inputs", "names"),
    [
        (X, (), set()),
        (X.bfloat16(), (), set()),
        (X.softmax(1), (), set()),
        ((X > 0), (), set()),
        (X.argmax(1), (), set()),
        (X.square().mean(), (), set()),
        (X.clone(), (X,), set()),
        (
            torch.zeros(8, 8),
            (),
            {"zeros", "the mean", "noise", "one value along axis 0", "one value along axis 1"},
        ),
        (
            torch.ones(8, 8),
            (),
            {"the mean", "noise", "one value along axis 0", "one value along axis 1"},
        ),
        (X[:1].expand(8, 48), (), {"one value along axis 0"}),
        (X + 1e-6 * X.square(), (X,), {"input 1"}),
    ],
)
def test_null_answers_pass_for_outputs_that_prove_nothing(output, inputs, names):
    assert passes(output, inputs) == names
