"""Fixes of a step that is built from a program's file: what each leaves changed."""

import sys
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from gpulab.core.jobs import StepRequest
from gpulab.features.trials import transformations
from gpulab.features.trials.worker import seen_of
from gpulab.function_step import FunctionStep

TRAIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(8, 3, 4, 4), torch.randn(8, 1)), batch_size=4)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())

def step():
    losses = []
    for x, y in loader:
        optimizer.zero_grad(set_to_none=False)
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
"""
LAB = SimpleNamespace(device=torch.device("cpu"))


@pytest.fixture
def build(tmp_path, monkeypatch):
    file = tmp_path / "planted_train.py"
    file.write_text(TRAIN)
    monkeypatch.syspath_prepend(str(tmp_path))

    def build():
        torch.manual_seed(0)
        return FunctionStep(str(file), "step").build(LAB)

    return build


def test_every_build_has_objects_of_its_own_and_the_same_numbers(build):
    first, second = build(), build()
    assert first.modules[0] is not second.modules[0]
    assert first.step() == second.step()
    assert len(first.optimizers) == len(first.loaders) == 1
    assert {"loader.dataset.tensors[0]", "loader.dataset.tensors[1]"} <= first.tensors.keys()


def test_the_file_of_a_package_imports_relatively(tmp_path, monkeypatch):
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "helper.py").write_text("N = 7\n")
    (folder / "train.py").write_text("from .helper import N\ndef step():\n    return N\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    assert FunctionStep(str(folder / "train.py"), "step").build(LAB).step() == 7


def test_a_model_is_really_compiled(build, monkeypatch):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    built = build()
    transformations.compile_model(built)
    from torch._dynamo.utils import counters  # at collection it would take a second

    graphs = counters["stats"]["unique_graphs"]
    built.step()
    assert counters["stats"]["unique_graphs"] > graphs
    counters.clear()  # checks of what a process does not compile go by them


def test_what_is_checked_shows_a_parameter_that_stays_where_it_was(build):
    built, frozen = build(), build()
    frozen.optimizers[0].param_groups[0]["params"].pop()
    built.step(), frozen.step()
    expected, moved = built.output()[-1], frozen.output()[-1]
    assert torch.allclose(expected[:-1], moved[:-1], atol=0.1)
    assert moved[-1] < expected[-1] - 1


def test_contexts_are_left_as_they_were_found(build):
    built = build()
    built.contexts.clear()
    before = torch.backends.cudnn.benchmark, torch.backends.cuda.matmul.fp32_precision
    for fix in (transformations.tf32, transformations.cudnn_benchmark):
        fix(built)
    with built.entered():
        assert torch.backends.cudnn.benchmark
    after = torch.backends.cudnn.benchmark, torch.backends.cuda.matmul.fp32_precision
    assert after == before
    assert built.dtype == "tf32"


def test_workers_persist_until_the_build_is_closed(build):
    built = build()
    transformations.loader_workers(built)
    plain = build()
    assert built.step() == pytest.approx(plain.step())
    (loader,) = built.loaders
    assert loader.num_workers > 0
    assert loader._iterator is not None
    for close in built.closing:
        close()
    assert loader._iterator is None


LISTED = """
import torch

layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
heads = torch.nn.ModuleDict({"used": torch.nn.Linear(4, 1), "idle": torch.nn.Linear(4, 1)})
idle = torch.optim.AdamW(heads["idle"].parameters())
optimizer = torch.optim.AdamW([*layers.parameters(), *heads["used"].parameters()])

def step():
    torch.nn.Module.smart_apply = torch.nn.Module.apply
    del torch.nn.Module.smart_apply
    y = torch.ones(2, 4)
    for layer in layers:
        y = layer(y)
    heads["used"](y).sum().backward()
    optimizer.step()
"""


def test_what_holds_modules_is_no_model_and_what_is_not_called_has_no_fix(tmp_path):
    file = tmp_path / "listed.py"
    file.write_text(LISTED)
    seen = seen_of(StepRequest(file=str(file), function="step", device="cpu"))
    assert seen.why_not["fused_optimizer"] == ""
    assert seen.why_not["channels_last"] == "no 2d convolutions"
    built = FunctionStep(str(file), "step").build(LAB)
    transformations.autocast_bf16(built)
    assert all("forward" in vars(layer) for layer in built.module.layers)
    assert "forward" not in vars(built.module.layers)
