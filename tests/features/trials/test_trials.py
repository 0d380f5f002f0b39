"""`--run --what-if -- PROGRAM` and `--run --try -- PROGRAM`: changes of a loop that runs."""

import json
import sys

import pytest

from gpulab.features.trials.events import TrialPair, TriedChange
from gpulab.features.trials.report import trials_report

LOOP = """
    import sys, time
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)  # others on a busy machine make fused updates thirty times slower
    model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(8)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    backward = torch.autograd.backward
    x = torch.randn(32, 32)

    def extra():
        return sum(range(20_000))

    steps, until = 0, time.monotonic() + float(sys.argv[2])
    while steps < int(sys.argv[1]) or time.monotonic() < until:
        steps += 1
        optimizer.zero_grad()
        with torch.autograd.set_detect_anomaly("anomaly" in sys.argv):
            loss = model(x).square().mean()
            loss.backward()
        optimizer.step()
        extra()
    same = backward is torch.autograd.backward
    fused = optimizer.param_groups[0]["fused"]
    print(loss.item().hex(), same, fused, torch.is_anomaly_enabled())
"""
WORKERS = """
    import time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 600

        def __getitem__(self, index):
            time.sleep(0.01)
            return torch.ones(8)

    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in DataLoader(Slow(), batch_size=1, num_workers=1):
        model(batch).sum().backward()
        optimizer.step()
"""


def tried(lab, *command, flags):
    target = lab.folder / "r.json"
    target.unlink(missing_ok=True)
    finished = lab.call(
        "--run", "--json", target, "--telemetry", "off", *flags, "--", sys.executable, *command
    )
    assert finished.code == 0, finished.stderr
    finished.trials = json.loads(target.read_text())["runs"][0]["trials"]
    return finished


def by_name(rows):
    return {row["name"]: row for row in rows}


@pytest.mark.slow
def test_parts_are_delayed_and_the_loop_computes_what_it_computed(lab):
    lab.write("loop.py", LOOP)
    alone = lab.call("--run", "--", sys.executable, "loop.py", "8000", "0")
    finished = tried(lab, "loop.py", "8000", "0", flags=("--what-if", "extra,none"))
    assert finished.stdout.split()[0] == alone.stdout.split()[0]  # the loss to its last bit
    parts = by_name(finished.trials["parts"])
    assert parts["none"]["why_not"] == "the main file has no function of this name"
    assert parts["loading"]["why_not"] == "no step calls it"
    assert {"extra", "forward", "backward", "optimizer"} <= parts.keys()
    assert parts["extra"]["slope"] is not None
    assert 0 < parts["extra"]["share"] < 1
    assert "on the critical path" in finished.stderr


@pytest.mark.slow
def test_a_fix_is_read_back_in_the_windows_and_put_back_at_the_end(lab):
    lab.write("loop.py", LOOP)
    names = "fused_optimizer,no_anomaly_detection,tf32,tf31"
    finished = tried(lab, "loop.py", "0", "22", "anomaly", flags=("--try", names))
    assert finished.stdout.split()[1:] == ["True", "None", "False"]
    fixes = by_name(finished.trials["fixes"])
    fused, anomaly = fixes["fused_optimizer"], fixes["no_anomaly_detection"]
    assert 0 < fused["in_effect"] == fused["pairs"]
    assert (fused["was"], fused["now"]) == ("for-loop", "fused")
    assert 0 < anomaly["in_effect"] == anomaly["pairs"]
    assert (anomaly["was"], anomaly["now"]) == ("True", "False")
    assert fixes["tf32"]["why_not"] == "on a GPU only"
    assert fixes["tf31"]["why_not"].startswith("no such fix: threads, ")
    assert "windows: for-loop -> fused" in finished.stderr


@pytest.mark.slow
def test_loading_is_delayed_in_the_workers(lab):
    lab.write("train.py", WORKERS)
    parts = by_name(tried(lab, "train.py", flags=("--what-if",)).trials["parts"])
    assert parts["loading"]["share"] > parts["forward"]["share"]
    assert parts["loading"]["slope"]["value"] > 0


def change(kind, *pairs):
    rows = [TrialPair(plain, changed, delay, part, True) for plain, changed, delay, part in pairs]
    return TriedChange(kind, "name", "", "1", "2", "", rows)


def test_a_gain_is_the_share_times_the_slope():
    hidden = change("part", *[(1.0, 1.0, 0.2, 0.5)] * 8)
    critical = change("part", *[(1.0, 1.2, 0.2, 0.5)] * 8)
    first, second = trials_report([hidden, critical]).parts
    assert (first.slope.value, second.slope.value) == (pytest.approx(1), 0)
    assert first.gain.value == pytest.approx(0.05)
    assert first.gain.has_interval


def test_a_window_in_which_a_fix_was_not_in_effect_counts_for_nothing():
    tried = change("fix", *[(1.0, 0.5, 0, 0)] * 8)
    tried.pairs.append(TrialPair(1.0, 0.1, 0, 0, False))
    (fix,) = trials_report([tried]).fixes
    assert fix.speedup.value == pytest.approx(2)
    assert (fix.in_effect, fix.pairs) == (8, 9)
