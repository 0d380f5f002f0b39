"""`--what-if`: what each part of a step would gain, by delaying it."""

import pytest

from gpulab.core.statuses import ExitCode

PIPELINE = """
    import queue, threading, time
    import torch
    from gpulab import Scenario, Work

    scenario = Scenario("mine")

    @scenario.variant
    def alone(lab):
        x = torch.rand(8)
        def step():
            with lab.phase("first"):
                time.sleep(0.002)
            with lab.useful():
                return x @ x
        return Work(step, inputs=x)

    @scenario.variant
    def beside(lab):
        x = torch.rand(8)
        def step():
            ready = queue.Queue()
            def load():
                with lab.phase("load"):
                    time.sleep(0.002)
                ready.put(x)
            thread = threading.Thread(target=load)
            thread.start()
            with lab.phase("data"):
                batch = ready.get()
            with lab.useful():
                time.sleep(0.001)
            thread.join()
            return batch * 2
        return Work(step, inputs=x)
"""
TRAIN = """
    import torch
    from torch.utils.data import DataLoader

    def inputs():
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        return model, optimizer, DataLoader(torch.randn(64, 64), batch_size=32)

    def step(model, optimizer, loader):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
"""


def parts_of(finished):
    return {part["name"]: part for part in finished.run["what_if"]["parts"]}


@pytest.mark.slow
def test_parts_of_one_thread_have_slopes_and_gains_with_intervals(lab):
    lab.write("mine.py", PIPELINE)
    finished = lab.run("mine.py", "--what-if", time_s="0.5")
    assert finished.code == ExitCode.MEASURED, finished.stderr
    parts = parts_of(finished)
    assert set(parts) == {"first", "useful"}
    first = parts["first"]
    assert (first["kind"], first["lane"], first["why_not"]) == ("phase", "step's thread", "")
    assert first["share"] > parts["useful"]["share"]
    slope = first["slope"]
    assert slope["low"] <= slope["value"] <= slope["high"]
    assert first["gain_from"] == "its slope"
    assert finished.run["what_if"]["hooks_cost"] is not None
    for variant in finished.run["variants"]:  # outputs are checked as any others
        assert (variant["status"], variant["unchecked"], variant["error"]) == ("ok", None, 0.0)
    assert "10% less" in finished.stderr


@pytest.mark.slow
def test_where_several_threads_run_all_others_are_delayed_too(lab):
    lab.write("mine.py", PIPELINE)
    parts = parts_of(lab.run("mine.py", "--what-if", "beside", time_s="1"))
    assert parts["load"]["lane"] == "thread"
    assert parts["load"]["gain_from"] == "the others delayed"
    assert parts["data"]["why_not"].startswith("it waits for another thread")
    assert parts["data"]["slope"] is None


@pytest.mark.slow
def test_a_program_without_phases_has_parts_of_its_own(lab):
    lab.write("train.py", TRAIN)
    finished = lab.run(
        "train.py:step", "--with", "inputs", "--what-if", "aten::mm,aten::conv2d", time_s="1"
    )
    assert finished.code == ExitCode.MEASURED, finished.stderr
    parts = parts_of(finished)
    kinds = {"forward", "backward", "optimizer", "loading"}
    assert kinds <= {part["kind"] for part in parts.values()}
    assert parts["aten::mm"]["slope"] is not None
    assert parts["aten::conv2d"]["why_not"] == "no step calls it"


COMPILED = """
    import torch

    model = torch.compile(torch.nn.Linear(8, 8), backend="eager")
    x = torch.rand(4, 8)

    def step():
        model(x).sum().backward()
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(
            ("mine.py", "--what-if", "none"),
            "neither a variant (alone, beside) nor an operation",
            marks=pytest.mark.slow,
        ),
        (("mine.py", "--what-if", "--repeat", "2"), "--what-if and --repeat"),
        pytest.param(
            ("empty.py:step", "--what-if"),
            "no part of this step can be delayed",
            marks=pytest.mark.slow,
        ),
        pytest.param(("compiled.py:step", "--what-if"), "it is compiled", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_asked_is_said(lab, arguments, words):
    lab.write("mine.py", PIPELINE)
    lab.write("empty.py", "def step():\n    return 1.0\n")
    lab.write("compiled.py", COMPILED)
    finished = lab.run(*arguments)
    assert words in finished.stderr + finished.stdout
