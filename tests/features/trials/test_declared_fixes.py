"""Declarations of fixes: each has its transformation, and applies where a step calls it."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader

from gpulab.core.jobs import StepRequest
from gpulab.features.trials import transformations, worker
from gpulab.features.trials.fixes import FIXES, StepSeen
from gpulab.features.trials.runs import fixes_named, scenario_text
from gpulab.options import UsageError
from gpulab.session.derived import names_in

NOTHING = StepSeen(why_not={fix.name: "no" for fix in FIXES})


def reasons(monkeypatch, device="cuda", **differences):
    """Why fixes do not apply to a step with all flaws, on a machine that can do everything."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    monkeypatch.setattr(worker, "find_spec", lambda name: True)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    model = torch.nn.Conv2d(1, 1, 1)
    step = {
        "device": device,
        "all_models": [model],
        "models": [model],
        "optimizers": [torch.optim.AdamW(model.parameters())],
        "loaders": [loader := DataLoader([1])],
        "epochs": {id(loader)},
        "compiled": False,
        "autocast": False,
        "convolutions": True,
        "fp32": True,
        "reads": 1,
    }
    return worker.why_not(SimpleNamespace(**{**step, **differences}))


def applying(why_not):
    return {name for name, reason in why_not.items() if not reason}


def test_a_step_of_nothing_has_nothing_to_fix(tmp_path):
    file = tmp_path / "nothing.py"
    file.write_text("def step(): ...")
    seen = worker.seen_of(StepRequest(file=str(file), function="step", device="cpu"))
    assert applying(seen.why_not) == set()


def test_a_step_with_all_flaws_has_all_fixes_that_go_together(monkeypatch):
    why_not = reasons(monkeypatch)
    assert list(why_not) == [fix.name for fix in FIXES]
    assert why_not.keys() - applying(why_not) == {"cuda_graph"}


def test_a_model_whose_forward_is_not_called_has_no_fix_of_it(monkeypatch):
    why_not = reasons(monkeypatch, models=[])
    assert why_not["compile_model"] == "no step calls the model's forward"
    assert why_not["autocast_bf16"] == why_not["compile_model"]
    assert why_not["channels_last"] == "no 2d convolutions"


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.name)
def test_its_text_is_a_function_of_the_scenario_that_tries_it(fix):
    request = StepRequest(file="/folder/train.py", function="step", arguments="/folder/m.py:make")
    written = scenario_text(request, StepSeen(inputs=["args[0]"]), [fix], [fix])
    tree = ast.parse(written)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert names == [f"with_{fix.name}", "as_it_is", fix.name, "all_together"]
    imported = {"torch", "os", "contextmanager"} & {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert {"torch", "os", "contextmanager"} & used <= imported


def test_every_function_of_the_transformations_is_a_fix():
    functions = ast.parse(Path(transformations.__file__).read_text()).body
    names = {node.name for node in functions if isinstance(node, ast.FunctionDef)}
    assert names == {fix.name for fix in FIXES}


def test_fixes_are_chosen_by_name_and_stay_in_the_order_in_which_they_are_applied():
    assert [fix.name for fix in fixes_named([], NOTHING)] == [fix.name for fix in FIXES]
    chosen = fixes_named(names_in("cuda_graph, tf32,"), NOTHING)
    assert [fix.name for fix in chosen] == ["tf32", "cuda_graph"]
    with pytest.raises(UsageError, match="--try 'tf31': no such fix; these apply: none"):
        fixes_named(["tf32", "tf31"], NOTHING)
