"""Every variant of every lesson in CUDA C++ gives the values of its formula in float64, on sizes
large and odd.

Its kernels run on the CPU, blocks and threads forward and backward; and each formula finds kernels
that were spoiled.
"""

from itertools import product

import pytest
import torch
from lessons import build, names, output
from shim import AVAILABLE, KernelError

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no g++, or no Linux")
NUMBERS = (1, 3, 31, 1000, 4099)
ERROR = 1e-5
"""Of the largest element: roundings in fp32 stay far below it, an element of another place or time
does not.
"""


def fp32(number):
    """As a kernel takes it."""
    return torch.tensor(number).item()


def series(x, terms):
    y = torch.ones_like(x)
    for _ in range(terms):
        y = y * x + 1
    return y


def expensive_side(params, x):
    values = torch.where(x >= 0.75, series(x, params["terms"]), 0.0)
    whole = len(x) // 100 * 100
    return [part for part in (values[:whole].view(-1, 100), values[whole:]) if part.numel()]


def energies(_, x, decays):
    sums = torch.zeros(len(decays), x.shape[1], dtype=torch.float64)
    for sample in x:
        sums = decays[:, None] * sums + sample
    return sums.square().sum(0)


def sum_of_lines(params, lines):
    """As a whole number of 32 bits, of four chains: the lab of these builds has no SMs."""
    total = int(lines[:64].sum()) * 4 * params["steps"] // 64
    return torch.tensor((total + 2**31) % 2**32 - 2**31, dtype=torch.float64)


def squares(params, x):
    terms, term = [], torch.zeros_like(x)
    for _ in range(params["values"]):
        term = term * x + 1
        terms.append(term)
    return (torch.stack(terms) - torch.stack(terms).mean(0)).square().sum(0)


def point(variant, x):
    if variant == "plus_one":
        return x + 1
    if variant == "cubic":
        return 0.5 * x**3 - 1.5 * x**2 + 0.25 * x + 2
    for _ in range(int(variant.removeprefix("fma_"))):
        x = fp32(0.998) * x + fp32(0.001)
    return x


# What the variants of a lesson give, from its parameters and the inputs of the first one.
FORMULAS = {
    "arithmetic_intensity": lambda _, a, b: ((a + b) * a + b) ** 2,
    "coalescing": lambda _, x: 1.7 * x,
    "divergence": expensive_side,
    "launch_bounds": energies,
    "loop_unrolling": lambda params, x: series(x, params["terms"]),
    "memory_hierarchy": sum_of_lines,
    "occupancy": lambda _, x: 2 * x + 1,
    "reduction": lambda _, x: x.sum(0, keepdim=True),
    "register_remedies": squares,
    "restrict_pointers": lambda _, x, mean, scale: (x - mean) * scale,
    "shared_memory_prefetch": lambda _, x: 2 * x + 1,
    "shared_memory_tiling": lambda _, a, b: a @ b,
    "vector_add": lambda params, a, b: (
        (a + b).half().double() if params["dtype"] == "fp16" else a + b
    ),
    "vectorized_loads": lambda _, x: x,
}
FORMULAS_OF_VARIANTS = {"roofline_walk": point}

SIZES = {
    "arithmetic_intensity": [{"n": n} for n in (*NUMBERS, 4096)],
    "coalescing": [{"n": n, "window": window} for n in NUMBERS for window in (1, 256)]
    + [{"n": 2 * 8192 - 1}, {"n": 4 * 8192, "window": 8192}, {"n": 32 * 8192 + 1}],
    "divergence": [{"n": n, "terms": 32} for n in NUMBERS]
    + [{"n": 1000, "terms": 32, "percent": 100}],
    "launch_bounds": [{"n": n, "scales": 12, "samples": 3} for n in NUMBERS] + [{"n": 256}],
    "loop_unrolling": [{"n": n} for n in (*NUMBERS, 256, 1024, 1025)],
    "memory_hierarchy": [{"steps": steps, "l2_kib": 4} for steps in (64, 192, 1024)],
    "occupancy": [{"n": n, "block": 64} for n in (*NUMBERS, 512, 100_003)]
    + [{"n": 4096, "block": 1024}],
    "reduction": [{"n": n} for n in (*NUMBERS, 4096)]
    + [{"n": 100_003, "per_thread": 4, "block": 64}],
    "register_remedies": [{"n": n} for n in NUMBERS] + [{"n": 64, "values": 96}],
    "restrict_pointers": [{"n": n} for n in NUMBERS] + [{"n": 257, "rows": 1}],
    "roofline_walk": [{"n": n} for n in (*NUMBERS, 1001, 1002)],
    "shared_memory_prefetch": [{"n": n} for n in (*NUMBERS, 4096, 4 * 256 * 32 + 4)]
    + [{"n": 4099, "block": 64}],
    "vector_add": [{"n": n} for n in (*NUMBERS, 4096)]
    + [{"n": n, "dtype": "fp16"} for n in (1, 1000, 4099)],
    "shared_memory_tiling": [
        {"m": m, "n": n, "k": k}
        for m, n, k in [
            (1, 1, 1),
            (1, 130, 17),
            (17, 1, 130),
            (130, 17, 1),
            (31, 36, 40),
            (128, 128, 8),
            (132, 140, 9),
        ]
    ],
    "vectorized_loads": [{"n": n, "offset": offset} for n in NUMBERS for offset in range(5)],
}

# What breaks a lesson's kernels: the variant that shows it, sizes, a piece of code, and what stands
# there instead.
SPOILED = [
    ("arithmetic_intensity", "float4", {"n": 4099}, "first + 4 <= n", "first + 3 <= n"),
    ("coalescing", "coalesced", {"n": 1000}, "if (t >= n) return;", "if (t > n) return;"),
    ("divergence", "predicated", {"n": 1000}, "if (i >= n) return;", "if (i > n) return;"),
    ("launch_bounds", "eight_blocks", {"n": 1000}, "in[t * n + i]", "in[t * n + i + 1]"),
    ("loop_unrolling", "four_chains", {"n": 4099}, "i += CHAINS * step", "i += step"),
    ("memory_hierarchy", "chase_l2", {"steps": 128}, "at = line[0]", "at += WORDS / 2"),
    ("occupancy", "starved_8_loads", {"n": 4099}, "first + tile <= n", "first + tile <= n + 2048"),
    ("reduction", "shared_tree", {"n": 4099}, "        __syncthreads();\n        if", "        if"),
    ("register_remedies", "smaller_array", {"n": 1000}, "first * weight", "weight"),
    ("restrict_pointers", "hoisted", {"n": 1000}, "float m = mean[i]", "float m = mean[i + 1]"),
    ("roofline_walk", "fma_4", {"n": 4098}, "if (left > 1)", "if (left > 2)"),
    ("shared_memory_prefetch", "async_copy", {"n": 20_000}, "&tiles[now ^ 1]", "&tiles[now]"),
    ("vector_add", "cuda_scalar", {"n": 1000}, "if (i < n) out[i]", "if (i <= n) out[i]"),
    ("shared_memory_tiling", "tiled", {}, "        __syncthreads();\n#pragma", "#pragma"),
    ("vectorized_loads", "one_float4", {"n": 4099}, "first + WIDTH <= n", "first + WIDTH <= n + 1"),
]


QUICK = ("coalescing", "reduction", "shared_memory_tiling", "vector_add")
"""Lessons of every test run; compiling those of all takes half a minute."""


def slow_unless_quick(value, name):
    return pytest.param(value, marks=[pytest.mark.slow] * (name not in QUICK), id=name)


def expected_of(name, variant, built):
    first = next(iter(built.works.values())).inputs
    inputs = [tensor.double() for tensor in (first if isinstance(first, tuple) else (first,))]
    if name in FORMULAS_OF_VARIANTS:
        return FORMULAS_OF_VARIANTS[name](variant, *inputs)
    return FORMULAS[name](built.params, *inputs)


def wrong(name, **options):
    """The variants whose output is another, or that fail: with the largest error in it or what is
    said.
    """
    built = build(name, **options)
    found = {}
    for variant, work in built.works.items():
        expected = expected_of(name, variant, built)
        try:
            values = output(work)
        except KernelError as error:
            found[variant] = str(error)
            continue
        parts = expected if isinstance(expected, list) else [expected]
        assert [part.shape for part in values] == [part.shape for part in parts]
        errors = [(one - other).abs().max() for one, other in zip(values, parts, strict=True)]
        error = max(errors) / max(part.abs().max() for part in parts).clamp(min=1e-30)
        if not error <= ERROR:
            found[variant] = error.item()
    return found


def test_every_lesson_is_tested():
    known = {*FORMULAS, *FORMULAS_OF_VARIANTS}
    assert known == set(SIZES) == {name for name, *_ in SPOILED}
    assert set(names()) == known


@pytest.mark.parametrize("name", [slow_unless_quick(name, name) for name in SIZES])
def test_every_variant_gives_the_values_of_the_formula(name):
    problems = []
    for chosen, backward in product(SIZES[name], (False, True)):
        found = wrong(name, backward=backward, **chosen)
        if found:
            problems.append((chosen, "backward" if backward else "forward", found))
    assert problems == []


@pytest.mark.parametrize("spoiled", [slow_unless_quick(spoiled, spoiled[0]) for spoiled in SPOILED])
def test_what_breaks_a_kernel_is_found(spoiled):
    name, variant, chosen, code, instead = spoiled
    ways = [
        wrong(name, backward=way, replace=(code, instead), only=(variant,), **chosen)
        for way in (False, True)
    ]
    assert any(ways)
