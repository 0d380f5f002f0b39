"""What a run makes of its checks: a variant that does not do the baseline's work gets no speedup.

What each check notices is in test_checker.py; here is one variant for each way to its verdict.
"""

import pytest

from gpulab.core.events import Checked, Stopped
from gpulab.core.statuses import Status, Verdict

HEAD = '''
"""Products: one is honest."""
import contextlib
import torch
from gpulab import Scenario, Work
scenario = Scenario("checks")
N = 64

def operands():
    return torch.randn(N, N), torch.randn(N, N)

@scenario.variant
def honest(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))
'''
VARIANT = """
@scenario.variant{options}
def {name}(lab):
    a, b = operands()
    out = torch.zeros(N, N)
    cached = a @ b
    {body}
"""


def returning(step, more=""):
    return f"return Work({step}, inputs=(a, b){more})"


def stepping(*lines, before="", more=""):
    step = "".join(f"\n        {line}" for line in lines)
    return f"{before}\n    def step():{step}\n    {returning('step', more)}"


WRONG = {
    # name: (body, code of the finding)
    "zeros": (returning("lambda: out.zero_()"), "relative_error"),
    "computed_in_build": (returning("cached.clone"), "ignores_its_inputs"),
    "changes_input": (stepping("c = a @ b", "a.mul_(1.0001)", "return c"), "changes_inputs"),
    "state_forgotten": (stepping("out.add_(1)", "return a @ b * out"), "relative_error"),
    "wrong_when_warm": (
        stepping(
            "nonlocal count",
            "count += 1",
            "return a @ b * (2 if count > 300 else 1)",
            before="count = 0",
        ),
        "relative_error",
    ),
}
REFUSED = {
    # name: (body, code of the finding, its values)
    "half_the_items": (
        returning("lambda: a @ b", ", items=0.5"),
        "items_differ",
        {"items": 0.5, "baseline": 1},
    ),
    "threads": (
        f"torch.set_num_threads(2)\n    {returning('lambda: a @ b')}",
        "set_while_building",
        {"settings": ["torch.set_num_threads"]},
    ),
    "threads_in_step": (
        stepping("torch.set_num_threads(2)", "return a @ b"),
        "set_while_stepping",
        {"settings": ["torch.set_num_threads"]},
    ),
    "leaking_context": (
        returning(
            "lambda: a @ b",
            ", context=lambda: torch.set_num_threads(2) or contextlib.nullcontext()",
        ),
        "left_by_context",
        {"settings": ["torch.set_num_threads"]},
    ),
    "directory": (
        "import os\n    os.chdir('/')\n    return None",
        "set_while_building",
        {"settings": ["os.chdir"]},
    ),
}
RIGHT = {
    "diverging": stepping(
        "out.add_(1)",
        "product = a @ b * out",
        "out.mul_(1e38).mul_(1e38).sub_(out)",
        "return product",
        more=", state=out",
    ),
    "in_a_context": returning("lambda: a @ b", ", context=torch.inference_mode"),
    "state_named": stepping("out.add_(1)", "return a @ b * out", more=", state=out"),
}
UNCHECKED = {
    # name: (options of its decorator, body of twice the work, code of the finding, its values)
    "returns_nothing": ("", stepping("a @ b", "a @ b"), "returns_nothing", {}),
    "declared": (
        "(unchecked='it is random')",
        stepping("a @ b", "return a @ b + torch.randn(1)"),
        "declared_unchecked",
        {"reason": "it is random"},
    ),
}


@pytest.fixture(scope="module")
def checked(module_lab):
    bodies = {name: ("", body) for cases in (WRONG, REFUSED) for name, (body, *_) in cases.items()}
    bodies |= {name: ("", body) for name, body in RIGHT.items()}
    bodies |= {name: (options, body) for name, (options, body, *_) in UNCHECKED.items()}
    variants = [
        VARIANT.format(name=name, options=options, body=body)
        for name, (options, body) in bodies.items()
    ]
    return module_lab.run(module_lab.write("checked.py", HEAD + "".join(variants)), "--smoke")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_output_gets_no_speedup(checked, name):
    variant, comparison = checked.variant(name), checked.comparison(name)
    assert (variant["status"], variant["time_s"]) == (Status.WRONG, None)
    assert variant["reason"]["code"] == WRONG[name][1]
    assert (comparison["verdict"], comparison["speedup"]) == (Verdict.WRONG, None)
    assert comparison["reason"] == variant["reason"]


@pytest.mark.parametrize("name", REFUSED)
def test_an_unfair_comparison_is_refused(checked, name):
    variant, comparison = checked.variant(name), checked.comparison(name)
    _, code, values = REFUSED[name]
    assert (variant["status"], variant["time_s"]) == (Status.INVALID, None)
    assert (variant["reason"]["code"], variant["reason"]["values"]) == (code, values)
    assert (comparison["verdict"], comparison["speedup"]) == (Verdict.INVALID, None)


@pytest.mark.parametrize("name", RIGHT)
def test_right_output_is_measured_and_checked_again(checked, name):
    assert (checked.variant(name)["status"], checked.variant(name)["reason"]) == (Status.OK, None)
    assert checked.comparison(name)["pairs"] > 0
    last_check = checked.state.variants[name].last(Checked)
    assert last_check.ok
    assert last_check.t > checked.state.last(Stopped).t


@pytest.mark.parametrize("name", UNCHECKED)
def test_what_cannot_be_checked_is_measured(checked, name):
    _, _, code, values = UNCHECKED[name]
    assert checked.variant(name)["status"] == Status.OK
    unchecked = checked.variant(name)["unchecked"]
    assert (unchecked["code"], unchecked["values"]) == (code, values)
    assert checked.findings(code)[0]["variant"] == name
    assert checked.state.variants[name].last(Checked) is None
    assert checked.comparison(name)["pairs"] > 0
    assert checked.variant(name)["time_s"]["value"] > 0


def test_what_is_wrong_decides_the_exit_code_and_spoils_nothing_else(checked):
    assert checked.code == 4
    assert checked.variant("honest")["status"] == Status.OK
    assert checked.variant("honest")["time_s"]["value"] > 0
    assert checked.run["failures"] == []
