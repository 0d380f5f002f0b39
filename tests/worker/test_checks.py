"""The checks bite: a variant that does not do the baseline's work gets no speedup."""

import pytest

HEAD = """
import torch
from gpulab import Scenario, Work
scenario = Scenario("checks"{keywords})
N = 64

def operands():
    return torch.randn(N, N), torch.randn(N, N)

@scenario.variant
def honest(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))

@scenario.variant
def suspect(lab):
    a, b = operands()
    out = torch.zeros(N, N)
    cached = a @ b
{body}
"""
WRONG = {
    "zeros": ("return Work(lambda: out.zero_(), inputs=(a, b))", "relative error 1"),
    "untouched zeros": ("return Work(lambda: out, inputs=(a, b))", "does not write all of its output"),
    "fresh zeros": ("return Work(lambda: torch.zeros(N, N), inputs=(a, b))", "relative error 1"),
    "a stale buffer": ("return Work(lambda: cached, inputs=(a, b))", "does not write all of its output"),
    "computed in the build": ("return Work(cached.clone, inputs=(a, b))", "computed in the build"),
    "too few elements": ("return Work(lambda: (a @ b)[: N // 2], inputs=(a, b))", "has 2048 elements"),
    "half is stale": (
        "def step():\n        torch.mm(a[:32], b, out=cached[:32])\n        return cached\n"
        "    return Work(step, inputs=(a, b))",
        "does not write all of its output",
    ),
    "NaN": ("return Work(lambda: (a @ b) * float('nan'), inputs=(a, b))", "holds NaN"),
    "one element off": (
        "def step():\n        c = a @ b\n        c[3, 3] += 0.05\n        return c\n"
        "    return Work(step, inputs=(a, b))",
        "one element is off by 0.05",
    ),
    "changes its input": (
        "def step():\n        c = a @ b\n        a.mul_(1.0001)\n        return c\n"
        "    return Work(step, inputs=(a, b))",
        "changes its inputs",
    ),
    "changes its input once": (
        "def step():\n        b.clamp_(min=-9)\n        a.relu_()\n        return a @ b\n"
        "    return Work(step, inputs=(a, b))",
        "changes its inputs",
    ),
    "too low a precision": (
        "return Work(lambda: (a.bfloat16() @ b.bfloat16()).float(), inputs=(a, b))",
        "relative error 0.00",
    ),
    "wrong later": (
        "count = 0\n    def step():\n        nonlocal count\n        count += 1\n"
        "        return a @ b * (2 if count > 1000 else 1)\n    return Work(step, inputs=(a, b))",
        "relative error 1",
    ),
}
RIGHT = {
    "its own layout": "a = a.T.contiguous()\n    return Work(lambda: a.T @ b, inputs=(a, b))",
    "another order": "return Work(lambda: (b.T @ a.T).T, inputs=(a, b))",
    "declared bf16": "return Work(lambda: (a.bfloat16() @ b.bfloat16()).float(), dtype='bf16', inputs=(a, b))",
    "in two halves": "return Work(lambda: [a[:32] @ b, a[32:] @ b], inputs=(a, b))",
    "out=": "return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b))",
    "output named": "return Work(lambda: [torch.mm(a, b, out=out), None][1], inputs=(a, b), output=out)",
    "output as a function": "return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b), output=lambda: out)",
    "inference mode": "return Work(lambda: a @ b, inputs=(a, b), context=torch.inference_mode)",
    "setting in its context": "return Work(lambda: a @ b, inputs=(a, b), context=torch.no_grad())",
    "yielded": "yield Work(lambda: a @ b, inputs=(a, b))\n    print('torn down', flush=True)",
}
REFUSED = {
    "half the items": ("return Work(lambda: a @ b, items=0.5, inputs=(a, b))", "0.5 items a step"),
    "no inputs named": ("return Work(lambda: a @ b)", "names no inputs"),
    "the newer tf32 switch": (
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'\n    return Work(lambda: a @ b, inputs=(a, b))",
        "torch.backends.cuda.matmul.fp32_precision",
    ),
    "a context that leaks": (
        "return Work(lambda: a @ b, inputs=(a, b), "
        "context=lambda: torch.set_num_threads(2) or __import__('contextlib').nullcontext())",
        "not put back by the context",
    ),
    "threads set": ("torch.set_num_threads(2)\n    return Work(lambda: a @ b, inputs=(a, b))", "set_num_threads"),
    "grad mode set": ("torch.set_grad_enabled(False)\n    return Work(lambda: a @ b, inputs=(a, b))", "grad_enabled"),
    "tf32 set": (
        "torch.backends.cuda.matmul.allow_tf32 = True\n    return Work(lambda: a @ b, inputs=(a, b))",
        "allow_tf32",
    ),
    "set while stepping": (
        "def step():\n        torch.set_num_threads(2)\n        return a @ b\n    return Work(step, inputs=(a, b))",
        "set while stepping",
    ),
}


def suspect(lab, body, keywords=""):
    path = lab.write("checked.py", HEAD.format(body="    " + body, keywords=keywords))
    return lab.run(path, time_s="0.2")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_output_gets_no_speedup(lab, name):
    body, reason = WRONG[name]
    finished = suspect(lab, body)
    assert finished.code == 4
    assert finished.variant("suspect")["status"] == "wrong"
    assert reason in finished.variant("suspect")["reason"]
    assert finished.verdict("suspect") == "wrong"
    assert finished.run["comparisons"][0]["speedup"] is None
    assert finished.variant("suspect")["time_s"] is None
    assert finished.variant("honest")["status"] == "ok"


@pytest.mark.parametrize("name", RIGHT)
def test_right_output_passes(lab, name):
    finished = suspect(lab, RIGHT[name])
    assert finished.variant("suspect")["reason"] is None
    assert finished.variant("suspect")["status"] == "ok"
    assert finished.verdict("suspect") is not None
    assert finished.code in (0, 7)  # 7: a short run on a busy machine may lose its control


@pytest.mark.parametrize("name", REFUSED)
def test_an_unfair_comparison_is_refused(lab, name):
    body, reason = REFUSED[name]
    finished = suspect(lab, body)
    assert finished.code == 7
    assert finished.variant("suspect")["status"] == "invalid"
    assert reason in finished.variant("suspect")["reason"]
    assert finished.verdict("suspect") == "invalid"
    assert finished.run["comparisons"][0]["speedup"] is None


def test_half_the_items_may_be_compared_per_item(lab):
    body = "return Work(lambda: a[:32] @ b, items=0.5, inputs=(a, b))"
    path = lab.write(
        "items.py",
        HEAD.format(body="    " + body, keywords=", per='item'").replace(
            "@scenario.variant\ndef suspect", "@scenario.variant(unchecked='half the rows')\ndef suspect"
        ),
    )
    finished = lab.run(path)
    assert finished.variant("suspect")["items"] == 0.5
    assert finished.verdict("suspect") is not None


STATE = """
import torch
from gpulab import Scenario, Work
scenario = Scenario("state")

def weights():
    return torch.randn(256)

@scenario.variant
def once(lab):
    w = weights()
    return Work(lambda: w.mul_(1.1){named})

@scenario.variant
def again(lab):
    w = weights()
    def step():
        w.add_(w, alpha=0.1)
        return w
    return Work(step{named})
"""


@pytest.mark.parametrize("named", [", state=w", ""], ids=["named", "not named"])
def test_a_stateful_step_is_checked_from_the_same_state(lab, named):
    finished = lab.run(lab.write("state.py", STATE.format(named=named)))
    assert finished.variant("again")["status"] == "ok"
    assert any("name its state" in text for text in finished.run["warnings"]) is not bool(named)


def test_a_baseline_without_output_is_no_baseline(lab):
    text = STATE.format(named="").replace("lambda: w.mul_(1.1)", "lambda: None")
    finished = lab.run(lab.write("nothing.py", text))
    assert finished.code == 4
    assert "returns nothing to check" in finished.variant("once")["reason"]
