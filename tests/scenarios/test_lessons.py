"""What lessons declare of their work, built in this process: against formulas that were written
down elsewhere.
"""

import importlib.util
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from gpulab.catalog.needs import compiler
from gpulab.core.machine import Device
from gpulab.engine.build.lab import WorkerLab
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.failure import SkippedError
from gpulab.scenario import MiB

SCENARIOS = Path(__file__).parents[2] / "scenarios"
# FLOPs and compulsory bytes, in fp32 or bf16, from the sizes alone.
# Vector addition and axpy: STREAM's ADD and TRIAD count 1 and 2 FLOPs, 24 bytes in fp64 (McCalpin,
# 1995). Softmax exp(x - max) / sum: maximum, subtraction, exponential, sum, division (Goodfellow et
# al., Deep Learning, 4.1). LayerNorm (x - mean) / std * w + b: sum, subtraction, square, sum,
# division, product, sum (Ba et al., 2016, eq. 3, 4). A product: 2 n^3 (Golub and Van Loan, Matrix
# Computations, 1.1). Attention: FlashAttention (Dao et al., 2022) counts 4 L^2 D a head, and the
# softmax is counted as above.
STATED = {
    "vector_add": lambda p: (p["mib"] * MiB // 4, 3 * p["mib"] * MiB),
    "axpy": lambda p: (2 * p["mib"] * MiB // 4, 3 * p["mib"] * MiB),
    "softmax": lambda p: (5 * p["rows_mib"] * MiB // 4, 2 * p["rows_mib"] * MiB),
    "layernorm": lambda p: (7 * p["rows_mib"] * MiB // 4, 2 * p["rows_mib"] * MiB),
    "small_matmul": lambda p: (2 * p["small"] ** 3, 12 * p["small"] ** 2),
    "large_matmul": lambda p: (2 * p["large"] ** 3, 12 * p["large"] ** 2),
    "small_matmul_bf16": lambda p: (2 * p["small"] ** 3, 6 * p["small"] ** 2),
    "large_matmul_bf16": lambda p: (2 * p["large"] ** 3, 6 * p["large"] ** 2),
    "attention": lambda p: (
        p["batch"] * p["heads"] * p["length"] ** 2 * (4 * p["width"] + 5),
        8 * p["batch"] * p["heads"] * p["length"] * p["width"],
    ),
}
INTENSITY = {"vector_add": 1 / 12, "axpy": 2 / 12, "softmax": 5 / 8, "layernorm": 7 / 8}
ROWS = [32, 64, 128, 256, 512, 1024, 2048]


def works_of(name, *, smoke, chosen, l2_bytes=0):
    """(scenario, parameters, work by variant) of a lesson on the CPU; of variants that a CPU
    has.
    """
    spec = importlib.util.spec_from_file_location(name, SCENARIOS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lab = WorkerLab(
        torch.device("cpu"), Device(kind="cpu", name="", l2_bytes=l2_bytes), WorkerPosition(())
    )
    params = module.scenario.resolve(on_cpu=True, smoke=smoke, chosen=chosen)
    works = {}
    for variant in module.scenario.variants.values():
        if "cuda" in variant.needs:
            continue
        names = variant.function.__code__.co_varnames
        torch.manual_seed(0)
        with suppress(SkippedError):  # of a dtype that this CPU lacks
            works[variant.name] = variant.function(
                lab, **{key: value for key, value in params.items() if key in names}
            )
    return module.scenario, params, works


@pytest.mark.parametrize("sizes", ["smoke", "cpu"])
def test_the_tour_stands_where_its_formulas_say(sizes):
    _, params, works = works_of("roofline_tour", smoke=sizes == "smoke", chosen={"mib": 1})
    assert list(works) == [name for name in STATED if name in works or not name.endswith("_bf16")]
    for name, work in works.items():
        assert (work.flops, work.bytes) == STATED[name](params), name
        per_byte = 3 if name.endswith("_bf16") else 6
        intensity = INTENSITY.get(name) or (
            params[name.partition("_")[0]] / per_byte if "matmul" in name else None
        )
        assert intensity is None or work.flops / work.bytes == pytest.approx(intensity)
        work.step()


def test_batch_sizes_take_the_same_rows():
    """In so many batches as each size has to, whose weights and activations are all declared."""
    scenario, params, works = works_of("batch_size", smoke=True, chosen={})
    assert scenario.increasing_memory
    assert list(works) == [f"batch_{rows}" for rows in ROWS]
    width, hidden, most = params["width"], params["hidden"], ROWS[-1]
    outputs = []
    for rows, work in zip(ROWS, works.values(), strict=True):
        assert (work.items, work.flops) == (most, 4 * most * width * hidden)
        assert work.bytes == 4 * (
            2 * most * width + most // rows * 2 * width * hidden + 4 * most * hidden
        )
        work.step()
        outputs.append(work.output)
    assert all(torch.allclose(output, outputs[0], rtol=1e-4, atol=1e-5) for output in outputs)
    assert outputs[0].shape == (most, width)


def test_weights_do_not_fit_the_cache_of_a_device_for_which_batch_size_asks_for_more():
    for cache_bytes in (0, 100_000, 1_000_000):
        _, _, works = works_of("batch_size", smoke=True, chosen={"caches": 4}, l2_bytes=cache_bytes)
        _, up, down = works["batch_32"].inputs
        assert up.nbytes + down.nbytes >= 4 * cache_bytes
        assert works["batch_32"].flops == 2 * ROWS[-1] * (up.numel() + down.numel())


def test_every_footprint_sums_every_row_in_every_pass():
    _, params, works = works_of("cache_footprint", smoke=True, chosen={"passes": 3})
    assert len(works) == 5
    for work in works.values():
        assert work.bytes == work.items * MiB == 3 * 8 * params["cache_mib"] * MiB
        work.step()
        sums = work.inputs.sum(dim=-1)
        assert sums.unique().numel() > 0.99 * sums.numel()  # a row cannot stand for another
        assert torch.allclose(work.output.reshape(-1), sums.repeat(3), rtol=1e-5)


@pytest.mark.skipif(compiler() is None, reason="no C++ compiler")
def test_chains_and_streams_of_every_footprint_have_one_sum():
    """On a CPU; the chain of each goes through all of its lines."""
    _, params, works = works_of("memory_hierarchy", smoke=True, chosen={"steps": 192})
    assert len(works) == 8
    for work in works.values():
        assert work.items == params["steps"]
        assert work.step().item() == works["chase_memory"].step().item() != 0
        following, seen, at = work.inputs[:, 0] // 16, 0, 0
        while seen == 0 or at != 0:
            at, seen = int(following[at]), seen + 1
        assert seen == len(work.inputs)


def test_layouts_hold_the_same_values():
    _, _, works = works_of("memory_layout", smoke=True, chosen={})
    view, each, once = works.values()
    assert not view.inputs.is_contiguous()
    assert once.inputs.is_contiguous()
    assert (view.bytes, each.bytes) == (once.bytes, 2 * once.bytes)
    assert view.step().equal(once.step())
    assert each.step().equal(once.step())


def test_every_worker_decodes_what_was_packed():
    """All samples of an epoch are decoded, few of them differ."""
    spec = importlib.util.spec_from_file_location("input_pipeline", SCENARIOS / "input_pipeline.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    samples = module.Compressed(300, 8, 32)
    assert len(samples) == 300
    assert len(samples.packed) == 256
    assert samples[0].shape == (8, 32)
    assert samples[0].equal(samples[256])
    assert not samples[0].equal(samples[1])
