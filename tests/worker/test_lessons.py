"""What lessons declare of their work, built in this process: against formulas that were written down elsewhere."""

import ast
import importlib.util
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from gpulab.protocol.device import Device
from gpulab.scenario import MiB
from gpulab.worker.building.lab import WorkerLab
from gpulab.worker.process.position import WorkerPosition

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
# FLOPs and compulsory bytes in fp32, from the sizes alone.
# Vector addition and axpy: STREAM's ADD and TRIAD count 1 and 2 FLOPs, 24 bytes in fp64 (McCalpin, 1995).
# Softmax exp(x - max) / sum: maximum, subtraction, exponential, sum, division (Goodfellow et al., Deep Learning, 4.1).
# LayerNorm (x - mean) / std * w + b: sum, subtraction, square, sum, division, product, sum (Ba et al., 2016, eq. 3, 4).
# A product: 2 n^3 (Golub and Van Loan, Matrix Computations, 1.1).
# Attention: FlashAttention (Dao et al., 2022) counts 4 L^2 D a head, and the softmax is counted as above.
STATED = {
    "vector_add": lambda p: (p["mib"] * MiB // 4, 3 * p["mib"] * MiB),
    "axpy": lambda p: (2 * p["mib"] * MiB // 4, 3 * p["mib"] * MiB),
    "softmax": lambda p: (5 * p["rows_mib"] * MiB // 4, 2 * p["rows_mib"] * MiB),
    "layernorm": lambda p: (7 * p["rows_mib"] * MiB // 4, 2 * p["rows_mib"] * MiB),
    "small_matmul": lambda p: (2 * p["small"] ** 3, 12 * p["small"] ** 2),
    "large_matmul": lambda p: (2 * p["large"] ** 3, 12 * p["large"] ** 2),
    "attention": lambda p: (
        p["batch"] * p["heads"] * p["length"] ** 2 * (4 * p["width"] + 5),
        16 * p["batch"] * p["heads"] * p["length"] * p["width"],
    ),
}
INTENSITY = {"vector_add": 1 / 12, "axpy": 2 / 12, "softmax": 5 / 8, "layernorm": 7 / 8}
ROWS = [32, 64, 128, 256, 512, 1024, 2048]


def works_of(name, *, smoke, chosen):
    """(scenario, parameters, work by variant) of a lesson on the CPU."""
    spec = importlib.util.spec_from_file_location(name, SCENARIOS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lab = WorkerLab(torch.device("cpu"), Device(kind="cpu", name=""), WorkerPosition(()))
    params = module.scenario.resolve(on_cpu=True, smoke=smoke, chosen=chosen)
    works = {}
    for variant in module.scenario.variants.values():
        names = variant.function.__code__.co_varnames
        works[variant.name] = variant.function(lab, **{key: value for key, value in params.items() if key in names})
    return module.scenario, params, works


@pytest.mark.parametrize("sizes", ["smoke", "cpu"])
def test_the_tour_stands_where_its_formulas_say(sizes):
    _, params, works = works_of("roofline_tour", smoke=sizes == "smoke", chosen={"mib": 1})
    assert list(works) == list(STATED)
    for name, work in works.items():
        assert (work.flops, work.bytes) == STATED[name](params), name
        intensity = INTENSITY.get(name) or (params[name.partition("_")[0]] / 6 if "matmul" in name else None)
        assert intensity is None or work.flops / work.bytes == pytest.approx(intensity)
        work.step()


def test_the_tour_says_what_it_counts():
    text = ast.get_docstring(ast.parse((SCENARIOS / "roofline_tour.py").read_text()))
    for stated in ("1 an element, over 12 bytes", "Softmax: 5", "LayerNorm: 7", "n/6", "4 L^2 D", "16 L D"):
        assert stated in text


def test_batch_sizes_need_more_memory_one_after_the_other():
    scenario, _, works = works_of("batch_size", smoke=True, chosen={})
    assert scenario.increasing_memory
    assert [work.items for work in works.values()] == ROWS
    assert all(smaller.bytes < larger.bytes for smaller, larger in pairwise(works.values()))
