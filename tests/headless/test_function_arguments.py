"""Functions with arguments: `--with`, and what runs to its end though a call does not."""

import pytest

from gpulab.core.statuses import ExitCode

TRAIN = """
    import asyncio
    import torch

    class Model:
        def __init__(self, n):
            self.weight = torch.rand(n, n)

        def forward(self, x):
            return x @ self.weight

        @classmethod
        def make(cls):
            return cls(8)

    def step(x, scale=2):
        assert x.shape == (16, 16)
        return x * scale

    async def later(x):
        await asyncio.sleep(0)
        return x

    def each(x):
        yield x @ x

    def inputs():
        return torch.rand(16, 16)

    def keywords(device):
        return {"x": torch.rand(16, 16, device=device), "scale": 3}

    def too_many():
        return 1, 2, 3

    def of_n(n):
        return n
"""
MAKERS = """
    import torch
    from train import Model

    def of_model():
        model = Model(16)
        assert type(model).forward is Model.forward
        return model, torch.rand(4, 16)
"""


@pytest.fixture
def run_of(lab):
    lab.write("train.py", TRAIN)
    lab.write("makers.py", MAKERS)
    return lambda what, *arguments: lab.run(what, "--smoke", *arguments, time_s="0.1").run


@pytest.mark.parametrize(
    ("function", "maker"),
    [
        ("step", "train.py:inputs"),
        ("step", "keywords"),
        ("Model.forward", "makers.py:of_model"),
        ("Model.make", None),
    ],
)
def test_a_function_is_called_with_what_another_one_makes(run_of, function, maker):
    run = run_of(f"train.py:{function}", *(("--with", maker) if maker else ()))
    assert (run["exit_code"], run["scenario"]) == (ExitCode.MEASURED, f"train:{function}")
    assert run["variants"][0]["time_s"]["value"] > 0


def test_what_a_call_only_begins_runs_to_its_end_and_is_named(run_of):
    run = run_of("train.py:step,later,each", "--with", "inputs")
    assert run["exit_code"] == ExitCode.MEASURED
    kinds = {finding["variant"]: finding["code"] for finding in run["explanations"]}
    assert kinds["later"] == "async_function"
    assert kinds["each"] == "generator_function"
    assert "step" not in kinds


def test_a_function_without_its_arguments_says_how_to_give_them(run_of):
    reason = run_of("train.py:step")["reason"]
    assert reason["sentence"].startswith("it takes arguments (x): --with FILE:function makes them")
    reason = run_of("train.py:Model.forward")["reason"]
    assert "a method, which takes self, x" in reason["sentence"]
    assert "returns (object, x)" in reason["sentence"]


def test_arguments_that_the_function_does_not_take_are_said(run_of):
    (failure,) = run_of("train.py:step", "--with", "too_many")["failures"]
    assert failure["stage"] == "build"
    message = failure["cause"]["values"]["message"]
    assert message.endswith(
        "--with: step does not take what too_many returned: too many positional arguments"
    )


@pytest.mark.parametrize(
    ("what", "maker", "words"),
    [
        ("train.py:step", "nobody", "train.py defines no 'nobody' at its top level"),
        ("train.py:step", "of_n", "of_n itself takes n"),
        ("train.py:step", "nowhere.py:inputs", "nowhere.py"),
        ("batched_matmul", "inputs", "--with makes arguments of functions"),
    ],
)
def test_a_mistake_in_it_is_said_before_anything_runs(lab, what, maker, words):
    lab.write("train.py", TRAIN)
    finished = lab.run(what, "--with", maker)
    assert finished.code == 2
    assert words in finished.stderr
