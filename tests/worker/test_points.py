"""Real runs on the CPU: ceilings beside them, points below them, and declared work that is looked into."""

import ast
import importlib.util
from pathlib import Path

import pytest
import torch

from gpulab.model.request import Device
from gpulab.model.scenario import MiB
from gpulab.worker.lab import WorkerLab
from gpulab.worker.warden import Where

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
POINTS = '''
"""Points: of every kind."""
import torch
from gpulab import MiB, Scenario, Work
scenario = Scenario("mine", params={"scale": 1})

@scenario.variant
def streams(lab, scale):
    """Far beyond the cache."""
    return _add(16 * MiB)

@scenario.variant(against=None)
def cached(lab, scale):
    """Far inside it."""
    return _add(MiB // 16)

@scenario.variant(against=None)
def multiplies(lab, scale):
    """A product."""
    return _product(512, scale)

@scenario.variant(against=None)
def launches(lab, scale):
    """Nothing but calls."""
    a, out = torch.ones(4), torch.empty(4)
    def step():
        for _ in range(50):
            torch.add(a, a, out=out)
    return Work(step, bytes=50 * 48, flops=50 * 4, inputs=a)

@scenario.variant(against=None)
def layers(lab, scale):
    """Small layers: what the host does around them is all there is."""
    model, row = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4)), torch.rand(1, 4)
    return Work(lambda: model(row), bytes=400, flops=64, inputs=row)

@scenario.variant(against=None)
def recurrent(lab, scale):
    """Of a whole recurrent layer torch counts nothing."""
    layer, rows, head = torch.nn.LSTM(32, 32), torch.rand(8, 4, 32), torch.nn.Linear(32, 8)
    return Work(lambda: head(layer(rows)[0]), bytes=10**5, flops=10**6, inputs=rows)

@scenario.variant(against=None)
def only_bytes(lab, scale):
    """Work without arithmetic."""
    a, out = torch.rand(24 * MiB), torch.empty(24 * MiB)
    return Work(lambda: out.copy_(a), bytes=a.nbytes + out.nbytes, inputs=a)

@scenario.variant(against=None)
def silent(lab, scale):
    """Nothing is declared."""
    a = torch.rand(1000)
    return Work(lambda: a + 1, inputs=a)

def _add(count):
    a, b, out = (torch.rand(count) for _ in range(3))
    return Work(lambda: torch.add(a, b, out=out), bytes=12 * count, flops=count, inputs=(a, b))

def _product(n, scale):
    a, b, out = (torch.randn(n, n) for _ in range(3))
    return Work(lambda: torch.mm(a, b, out=out), bytes=12 * n * n, flops=2 * n**3 * scale, inputs=(a, b))
'''


@pytest.mark.slow
def test_each_point_stands_below_its_own_roof(lab):
    path = lab.write("points.py", POINTS)
    done = lab.run(path, "--set", "scale=2", "--profile", "off", time_s="1")
    assert done.code in (0, 7), done.stderr  # the control may drift on a busy machine
    told = " ".join(done.run["warnings"])
    if "not used as ceilings: device memory" in told:
        pytest.skip("other processes disturbed the memory so much that the lab refused its ceiling, and said so")
    point = {one["name"]: one["roofline"] for one in done.run["variants"]}
    assert point["silent"] is None
    assert point["streams"]["intensity"] == pytest.approx(1 / 12)
    assert point["streams"]["bound"] == "memory"
    assert point["cached"]["bound"] == "cache"  # though the same operation
    assert point["launches"]["bound"] == "launch"  # and never memory, low as its intensity is
    assert point["only_bytes"]["intensity"] is None
    assert point["only_bytes"]["unit"] == "B/s"
    assert point["multiplies"]["intensity"] == pytest.approx(2 * 512 / 6)
    assert (point["multiplies"]["roof"], point["multiplies"]["source"]) == ("matrix fp32", "measured")
    assert all(one["work"] == "declared" for one in point.values() if one)
    assert "multiplies: declares 5.369e+08 FLOPs a step, and torch counts 2.684e+08" in told
    assert "streams: declares" not in told
    assert "recurrent: declares" not in told
    assert point["layers"]["bound"] == "launch"
    assert {one["name"]: one["operations"] for one in done.run["variants"]}["launches"] == 50
    known = {(one["roof"], one["kind"]): one for one in done.run["ceilings"]["ceilings"]}
    assert known["matrix", "fp32"]["source"] == "measured"
    assert known["vector", "fp32"]["source"] == "derived"  # and says so
    assert ("matrix", "bf16") not in known  # nothing here works in it
    assert not any("fp16" in kind.split() for _, kind in known)
    assert "A streams: memory-bound" in done.stderr
    assert "FLOP/byte" in done.stderr
    assert not (lab.folder / "cache" / "gpulab").exists()  # a CPU that drifts is measured beside each run
    assert len({one["source"] for one in done.run["ceilings"]["ceilings"]} - {"measured", "derived"}) == 0


def test_a_smoke_run_draws_no_conclusions(lab):
    done = lab.run(lab.write("points.py", POINTS.replace("16 * MiB", "4096").replace("24 * MiB", "4096")), "--smoke")
    assert done.code == 0, done.stderr
    assert done.run["ceilings"] is None
    assert all(one["roofline"] is None for one in done.run["variants"])


COMPILED = '''
"""Wrapped."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("mine")

@scenario.variant
def odd(lab):
    """A step that works, and does not under a dispatch mode."""
    a = torch.rand(1000)
    def step():
        if torch._C._len_torch_dispatch_stack():
            raise RuntimeError("not under a mode")
        return a + 1
    return Work(step, bytes=8000, flops=1000, inputs=a)
'''


def test_a_step_that_cannot_be_looked_into_is_measured_all_the_same(lab):
    done = lab.run(lab.write("odd.py", COMPILED), time_s="1")
    assert done.code == 0, done.stderr
    assert done.variant("odd")["operations"] is None
    assert done.variant("odd")["roofline"]["intensity"] == 0.125


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


@pytest.mark.parametrize("sizes", ["smoke", "cpu"])
def test_the_tour_stands_where_its_formulas_say(sizes):
    spec = importlib.util.spec_from_file_location("tour", SCENARIOS / "roofline_tour.py")
    tour = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tour)
    lab = WorkerLab(torch.device("cpu"), Device(kind="cpu", name=""), Where(()))
    params = tour.scenario.resolve(on_cpu=True, smoke=sizes == "smoke", chosen={"mib": 1})
    assert list(tour.scenario.variants) == list(STATED)
    for name, variant in tour.scenario.variants.items():
        wanted = {one: params[one] for one in params if one in variant.function.__code__.co_varnames}
        work = variant.function(lab, **wanted)
        assert (work.flops, work.bytes) == STATED[name](params), name
        intensity = INTENSITY.get(name) or (params[name.partition("_")[0]] / 6 if "matmul" in name else None)
        assert intensity is None or work.flops / work.bytes == pytest.approx(intensity)
        work.step()


def test_the_lesson_of_the_tour_says_what_it_counts():
    text = ast.get_docstring(ast.parse((SCENARIOS / "roofline_tour.py").read_text()))
    for stated in ("1 an element, over 12 bytes", "Softmax: 5", "LayerNorm: 7", "n/6", "4 L^2 D", "16 L D"):
        assert stated in text
