"""Declarations of fixes: each has its transformation, and applies where a step calls it."""

import ast
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpulab.core.jobs import StepRequest
from gpulab.features.trials import transformations
from gpulab.features.trials.declarations import FIXES
from gpulab.features.trials.facts import LoaderFacts, OptimizerFacts, StepFacts
from gpulab.features.trials.fix_runs import fixes_named, scenario_text
from gpulab.options import UsageError
from gpulab.session.derived import names_in

NOTHING = StepFacts()
GPU = StepFacts(
    device="cuda",
    capability=(9, 0),
    bf16=True,
    cores=8,
    models=1,
    images=True,
    products={"fp32": 4},
    convolutions={"fp32": 4},
    optimizers=[OptimizerFacts(name="AdamW", takes_fused=True)],
    loaders=[LoaderFacts(epochs=1)],
    reads=1,
    inputs=["args[0]"],
)


def applying(facts):
    return {fix.name for fix in FIXES if not fix.applies(facts)}


def test_a_step_of_nothing_has_nothing_to_fix():
    assert applying(NOTHING) == set()


def test_a_step_with_all_flaws_has_all_fixes_that_go_together():
    assert {fix.name for fix in FIXES} - applying(GPU) == {"cuda_graph"}


def test_a_model_whose_forward_is_not_called_has_no_fix_of_it():
    facts = replace(GPU, models=0, not_called=1, images=False)
    why_not = {fix.name: fix.applies(facts) for fix in FIXES}
    assert why_not["compile_model"] == "no step calls the model's forward"
    assert why_not["autocast_bf16"] == why_not["compile_model"]
    assert why_not["channels_last"] == "no 2d convolutions"


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.name)
def test_its_text_is_a_function_of_the_scenario_that_tries_it(fix):
    request = StepRequest(file="/folder/train.py", function="step", arguments="/folder/m.py:make")
    written = scenario_text(request, GPU, [fix], [fix])
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
    assert fixes_named([], GPU) == list(FIXES)
    chosen = fixes_named(names_in("cuda_graph, tf32,"), GPU)
    assert [fix.name for fix in chosen] == ["tf32", "cuda_graph"]
    with pytest.raises(UsageError, match="--try 'tf31': no such fix; these apply: none"):
        fixes_named(["tf32", "tf31"], NOTHING)
