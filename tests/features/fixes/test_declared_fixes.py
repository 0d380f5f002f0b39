"""Declarations of fixes: each has its transformation, and answers findings that there are."""

import ast
from pathlib import Path

import pytest
from gpulab.features.findings import findings

from gpulab.core.jobs import StepRequest
from gpulab.features.fixes import text
from gpulab.features.fixes.declarations import FIXES
from gpulab.features.fixes.facts import LoaderFacts, OptimizerFacts, StepFacts
from gpulab.features.fixes.runs import fixes_named
from gpulab.features.fixes.text import scenario_text
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
    attentions={"bf16": 1},
    optimizers=[OptimizerFacts(name="AdamW", takes=["fused", "foreach"], foreach=False)],
    loaders=[LoaderFacts(epochs=1)],
    zeroed=1,
    zeroed_lines=["train.py:3"],
    items=1,
    item_lines=["train.py:4"],
    inputs=["args[0]"],
)


def applying(facts):
    return {fix.name for fix in FIXES if not fix.applies(facts)}


def test_a_step_of_nothing_has_nothing_to_fix_but_its_compiler():
    assert applying(NOTHING) == {"compile_step"}


def test_a_step_with_all_flaws_has_all_fixes_that_go_together():
    names = {fix.name for fix in FIXES}
    assert names - applying(GPU) == {"compile_step", "cuda_graph"}


def test_a_promise_is_that_of_a_finding_that_there_is():
    codes = {code for fix in FIXES for code in fix.answers}
    assert codes
    assert [code for code in codes if not hasattr(findings, code)] == []


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
    functions = ast.parse(Path(text.__file__).with_name("transformations.py").read_text()).body
    names = {node.name for node in functions if isinstance(node, ast.FunctionDef)}
    assert names == {fix.name for fix in FIXES}


def test_fixes_are_chosen_by_name_and_stay_in_the_order_in_which_they_are_applied():
    assert fixes_named([], GPU) == list(FIXES)
    chosen = fixes_named(names_in("cuda_graph, tf32,"), GPU)
    assert [fix.name for fix in chosen] == ["tf32", "cuda_graph"]
    with pytest.raises(UsageError, match="--try 'tf31': no such fix; these apply: compile_step"):
        fixes_named(["tf32", "tf31"], NOTHING)
