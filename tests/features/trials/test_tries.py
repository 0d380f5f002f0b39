"""`--try`: fixes of a program's step, applied from outside, measured and checked."""

import pytest

TRAIN = """
    import torch

    batches = [(torch.randn(16, 16), torch.randn(16, 1)) for _ in range(2)]
    layers = [torch.nn.Linear(16, 16) for _ in range(6)]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)

    def step():
        losses = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses
"""


@pytest.fixture(scope="module")
def tried(module_lab):
    module_lab.write("train.py", TRAIN)
    module_lab.env["CXX"] = "no-compiler"  # torch.compile would take most of the time
    module_lab.env["PATH"] = ""
    kept = module_lab.folder / "kept.py"
    names = "cuda_graph,channels_last,fused_optimizer"
    finished = module_lab.run("train.py:step", "--try", names, "--keep", kept, time_s="0.3")
    return finished, kept


def fixes_of(finished):
    return {fix["name"]: fix for fix in finished.run["fixes"]}


@pytest.mark.slow
def test_a_fix_is_measured_and_checked(tried):
    finished, _ = tried
    fused = fixes_of(finished)["fused_optimizer"]
    assert fused["verdict"] not in ("wrong", "invalid")
    speedup = fused["speedup"]
    assert speedup["low"] <= speedup["value"] <= speedup["high"]
    assert fused["error"] <= fused["tolerance"]


@pytest.mark.slow
def test_what_does_not_apply_says_why(tried):
    finished, _ = tried
    fixes = fixes_of(finished)
    assert len(fixes) == 3  # that were named
    assert fixes["channels_last"]["why_not"] == "no 2d convolutions"
    assert fixes["cuda_graph"]["why_not"] == "on a GPU only"
    assert "no 2d convolutions" in finished.stderr


@pytest.mark.slow
def test_the_scenario_that_is_kept_runs_and_the_program_is_as_it_was(tried, module_lab):
    _, kept = tried
    again = module_lab.run(kept, "--smoke", time_s="0.1")
    statuses = {variant["name"]: variant["status"] for variant in again.run["variants"]}
    assert next(iter(statuses)) == "as_it_is"
    assert statuses["fused_optimizer"] == "ok"
    assert "def with_fused_optimizer(built):" in kept.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("batched_matmul", "--try", "one_by_one"), "--try takes a function (--run FILE:function"),
        (("train.py:step,breaks", "--try"), "--try takes one function"),
        pytest.param(
            ("train.py:step", "--try", "tf31"),
            "--try 'tf31': no such fix; these apply: ",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("train.py:breaks", "--try"), "RuntimeError: of the step", marks=pytest.mark.slow
        ),
    ],
)
def test_what_cannot_be_tried_is_said(lab, arguments, words):
    text = "def step(): ...\ndef breaks(): raise RuntimeError('of the step')\n"
    lab.write("train.py", text)
    finished = lab.run(*arguments)
    assert finished.code == 2
    assert words in finished.stderr
