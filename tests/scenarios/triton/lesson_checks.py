"""What each lesson's kernels have to compute, case by case: through its variants, and directly with
odd sizes.

A check is a generator of (case, function that gives the output and what float64 gives, largest
error allowed); errors are relative to the largest value. Small cases come first.
"""

from __future__ import annotations

from functools import partial
from itertools import cycle

import torch
import triton
import triton_lessons
from torch.nn import functional

CPU, SMS = torch.device("cpu"), 3
ROUNDING = 2**-23
# sums of products in fp32, and rounding of operands and of the result
ALLOWED = {"fp32": 1e-5, "fp16": 2e-3}
DTYPES = {"fp32": torch.float32, "fp16": torch.float16}
ROWS = [
    (1, 1),
    (3, 1),
    (1, 3),
    (127, 3),
    (5, 127),
    (200, 127),
    (3, 1000),
    (7, 4095),
    (2, 4096),
    (2, 5000),
]
MATRICES = [
    (1, 1, 1),
    (3, 127, 1),
    (127, 3, 33),
    (1, 1000, 3),
    (300, 1, 64),
    (100, 136, 104),
    (70, 70, 133),
]
GROUPS = ((1, "fp32"), (2, "fp16"), (8, "fp32"))
LENGTHS = [1, 3, 33, 127, 128, 200]


def _built(module, variant, expected, *, chosen=0, **params):
    """The output of a variant's step, and what is expected of its inputs."""
    work = triton_lessons.build(module, triton_lessons.Lab(CPU, SMS, chosen), variant, **params)
    returned = work.step()
    inputs = work.inputs if isinstance(work.inputs, tuple) else (work.inputs,)
    return returned if work.output is None else work.output, expected(*inputs)


def _given(compute, expected, *tensors):
    return compute(*tensors), expected(*tensors)


def _vector_add(module):
    for n in (1, 3, 127, 1000, 4096, 20_011):
        for dtype, allowed in (("fp32", ROUNDING), ("fp16", 2**-10)):
            for block in (64, 256):
                run = partial(_built, module, "in_triton", _sum, n=n, block=block, dtype=dtype)
                yield f"{n} of {dtype}, block {block}", run, allowed


def _sum(a, b):
    return a.double() + b.double()


def _fused_softmax(module):
    def in_pieces(rows):
        """By the kernel for long rows, however short they are: blocks of 512, so that a row has
        many.
        """
        out = torch.empty_like(rows)
        module._long[(len(rows),)](rows, out, rows.shape[1], BLOCK=512, num_warps=4)
        return out

    for count, columns in ROWS:
        small, large = torch.randn(count, columns), 200 * torch.randn(count, columns) + 1000
        for values, rows in (("small", small), ("large", large), ("masked", _masked(small))):
            for kernel in (module._by_triton, in_pieces) if count < 100 else (module._by_triton,):
                yield (
                    f"{count} x {columns} {values}, {kernel.__name__}",
                    partial(_given, kernel, _softmax, rows),
                    2e-6,
                )
    for columns in (1000, 40_000):
        yield (
            f"{columns} columns",
            partial(_built, module, "in_triton", _softmax, mib=1, columns=columns),
            2e-6,
        )


def _softmax(rows):
    return torch.softmax(rows.double(), 1)


def _masked(rows):
    """Whole pieces of a row without a value, but for the last column."""
    masked = rows.clone()
    masked[:, :-1] = torch.where(
        torch.arange(rows.shape[1] - 1) < 1200, float("-inf"), masked[:, :-1]
    )
    return masked


def _layernorm_gelu(module):
    for count, columns in [*ROWS, (2, 40_000)]:
        for values, rows in (
            ("at 0", torch.randn(count, columns)),
            ("at 10", 3 * torch.randn(count, columns) + 10),
        ):
            tensors = rows, 1 + torch.randn(columns) / 10, torch.randn(columns) / 10
            # The mean is rounded to fp32, which is as much of the result as the values are of their
            # spread.
            spread = (rows.double().var(1, correction=0) + 1e-5).sqrt()
            allowed = (
                ROUNDING * max(4.0, float((rows.abs().amax(1) / spread).max()))
                if columns > 1
                else 1e-6
            )
            yield (
                f"{count} x {columns} {values}",
                partial(_given, module._by_triton, _normed, *tensors),
                allowed,
            )
    yield "variant", partial(_built, module, "in_triton", _normed, mib=1, columns=1000), 1e-6


def _normed(rows, weight, bias):
    rows, weight, bias = rows.double(), weight.double(), bias.double()
    return functional.gelu(functional.layer_norm(rows, weight.shape, weight, bias, 1e-5))


def _triton_matmul(module):
    def tiles(group, a, b):
        (m, k), n = a.shape, b.shape[1]
        c, grid = torch.empty(m, n, dtype=a.dtype), (triton.cdiv(m, 32) * triton.cdiv(n, 64),)
        module._tile[grid](a, b, c, m, n, k, M=32, N=64, K=32, GROUP=group)
        return c

    for (m, n, k), (group, dtype) in zip(MATRICES, cycle(GROUPS), strict=False):
        a, b = torch.randn(m, k).to(DTYPES[dtype]), torch.randn(k, n).to(DTYPES[dtype])
        run = partial(_given, partial(tiles, group), _product, a, b)
        yield f"{m} x {n} x {k}, {dtype}, group {group}", run, ALLOWED[dtype]
    module._DTYPES["fp32"] = torch.float32
    candidates = [("tuned", chosen) for chosen in range(len(module._CONFIGS))]
    for (variant, chosen), dtype in zip(
        [("untuned", 0), *candidates, ("grouped", 0)], cycle(DTYPES), strict=False
    ):
        run = partial(
            _built, module, variant, _product, chosen=chosen, m=150, n=270, k=70, dtype=dtype
        )
        yield f"{variant}, candidate {chosen}, {dtype}", run, ALLOWED[dtype]


def _product(a, b):
    return a.double() @ b.double()


def _persistent_matmul(module):
    module._DTYPES["fp32"] = torch.float32
    tile = {"block_m": 32, "block_n": 64, "block_k": 32}
    sizes = [
        (1, 8, 8),
        (33, 72, 40),
        (97, 80, 72),
        (1, 300, 3),
        (70, 136, 33),
    ]
    for (m, n, k), (group, dtype) in zip(sizes, cycle(GROUPS), strict=False):
        for variant in triton_lessons.variants(module):
            if variant == "cublas" or (variant in ("by_tma", "specialized") and (n % 8 or k % 8)):
                continue  # such rows do not begin where the memory accelerator wants them
            run = partial(
                _built, module, variant, _product, m=m, n=n, k=k, dtype=dtype, group=group, **tile
            )
            yield f"{variant}, {m} x {n} x {k}, {dtype}, group {group}", run, ALLOWED[dtype]


def _attention(module):
    def flash(rows, columns, q, k, v):
        out, (batch, heads, length, width) = torch.empty_like(q), q.shape
        grid, scale = (triton.cdiv(length, rows), batch * heads), module._LOG2_E / width**0.5
        module._flash[grid](q, k, v, out, length, scale, WIDTH=width, ROWS=rows, COLUMNS=columns)
        return out

    blocks = [
        ((32, 32, 16), "fp32"),
        ((64, 32, 64), "fp16"),
        ((32, 64, 32), "fp32"),
        ((64, 64, 16), "fp16"),
    ]
    for length, ((rows, columns, width), dtype) in zip(LENGTHS, cycle(blocks), strict=False):
        tensors = (3 * torch.randn(2, 2, length, width).to(DTYPES[dtype]) for _ in range(3))
        run = partial(_given, partial(flash, rows, columns), _attended, *tensors)
        yield f"length {length}, {rows} x {columns} x {width}, {dtype}", run, ALLOWED[dtype]
    for chosen, dtype in zip(range(len(module._CONFIGS)), cycle(DTYPES), strict=False):
        yield (
            f"candidate {chosen}, {dtype}",
            partial(_attention_variant, module, chosen, dtype),
            ALLOWED[dtype],
        )


def _attention_variant(module, chosen, dtype):
    """Its work does not declare all of its inputs, so they are taken where they are made."""
    made = []

    class Torch:
        def __getattr__(self, name):
            return getattr(torch, name)

        def randn(self, *args, **kwargs):
            made.append(torch.randn(*args, **kwargs))
            return made[-1]

    module.torch = Torch()
    sizes = {"batch": 1, "heads": 2, "length": 200, "width": 32, "dtype": dtype}
    return _built(module, "in_triton", lambda *_: _attended(*made[:3]), chosen=chosen, **sizes)


def _attended(q, k, v):
    q, k, v = q.double(), k.double(), v.double()
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def _reduction(module):
    def parts(programs, block, data):
        out = torch.empty(programs)
        module._sum[(programs,)](data, out, len(data), BLOCK=block)
        return out

    def parts_of(programs, block, data):
        """Of program p every so many-th block, from the p-th on."""
        padded = functional.pad(data.double(), (0, -len(data) % (programs * block)))
        return padded.view(-1, programs, block).sum((0, 2))

    for n in (1, 3, 127, 1000, 4096, 20_011):
        for block in (64, 256):
            yield (
                f"{n}, block {block}",
                partial(_built, module, "in_triton", _total, n=n, block=block),
                2e-5,
            )
    for n, programs, block in (
        (1, 1, 16),
        (127, 3, 16),
        (1000, 5, 64),
        (1000, 100, 16),
        (4099, 7, 256),
    ):
        sizes = programs, block
        run = partial(_given, partial(parts, *sizes), partial(parts_of, *sizes), torch.rand(n))
        yield f"{n} by {programs} programs, blocks of {block}", run, 1e-6


def _total(data):
    return data.double().sum().reshape(1)


def _small_kernels(module):
    def by_triton(repeats, data, *tensors):
        out, count = torch.empty_like(data), data.numel()
        grid, columns = (triton.cdiv(count, 128),), data.shape[1]
        module._kernel[grid](data, *tensors, out, count, columns, repeats, BLOCK=128)
        return out

    def chain(repeats, *tensors):
        return module._chain(*(tensor.double() for tensor in tensors), repeats)

    for rows, columns, repeats in (
        (1, 1, 1),
        (1, 3, 2),
        (3, 127, 1),
        (127, 33, 3),
        (5, 1000, 8),
        (1, 1024, 2),
    ):
        tensors = torch.randn(rows, columns), *(torch.randn(columns) for _ in range(3))
        run = partial(_given, partial(by_triton, repeats), partial(chain, repeats), *tensors)
        yield f"{rows} x {columns}, {repeats} times", run, 2e-6
    yield (
        "variant",
        partial(_built, module, "in_triton", partial(chain, 2), mib=1, repeats=2),
        2e-6,
    )


def _utilization(module):
    def by_triton(programs, data):
        sums = torch.empty(len(data))
        module._squares[(programs,)](data, sums, len(data), PIECE=data.shape[1])
        return sums

    for pieces, programs, piece in (
        (1, 1, 16),
        (3, 1, 128),
        (7, 3, 64),
        (5, 8, 128),
        (127, 127, 16),
    ):
        run = partial(_given, partial(by_triton, programs), _squares, torch.randn(pieces, piece))
        yield f"{pieces} pieces of {piece}, {programs} programs", run, 1e-6
    for variant, launches in (
        ("small_kernels", 1),
        ("small_kernels", 5),
        ("one_block", 1),
        ("full_grid", 1),
    ):
        yield (
            f"{variant}, {launches}",
            partial(_built, module, variant, _squares, mib=1, launches=launches),
            1e-6,
        )


def _squares(data):
    return data.double().square().sum(1)


CHECKS = {
    "vector_add": _vector_add,
    "fused_softmax": _fused_softmax,
    "layernorm_gelu": _layernorm_gelu,
    "triton_matmul": _triton_matmul,
    "persistent_matmul": _persistent_matmul,
    "attention": _attention,
    "reduction": _reduction,
    "small_kernels": _small_kernels,
    "utilization": _utilization,
}
