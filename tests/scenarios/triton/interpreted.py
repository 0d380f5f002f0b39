"""Kernels of the lessons in Triton's interpreter, beside what torch computes: `python
tests/scenarios/triton/interpreted.py [LESSON ...]`.

It prints a line of JSON for each lesson. A process of its own: whether kernels are interpreted is
fixed when Triton is imported.

Each address that a kernel reads or writes is compared with the memory of its arguments, before it
is used: reads have to be inside a tensor, and writes inside one that is an output. Outputs are NaN
before the launch.
"""

from __future__ import annotations

import os

# the arrays are small
os.environ |= {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import json
import re
import sys
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import numpy as np
import torch
import triton_lessons
from triton.runtime import driver, interpreter
from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder

OUTPUTS = {"out", "c", "sums"}
"""Arguments of the lessons' kernels that are written to."""
DTYPES = ("fp32", "fp16")
ALLOWED = {"fp32": 2e-5, "fp16": 2e-3}
"""Errors relative to the largest value."""
TILE = {"block_m": 32, "block_n": 64, "block_k": 32}


def _sizes(**several):
    """Every combination of the values of some parameters."""
    return [dict(zip(several, values, strict=True)) for values in product(*several.values())]


SIZES = {
    "vector_add": _sizes(n=(1, 127, 20_011), block=(256,), dtype=DTYPES),
    "fused_softmax": _sizes(mib=(1,), columns=(1000, 4095, 40_000)),
    "layernorm_gelu": _sizes(mib=(1,), columns=(1000, 4095, 40_000)),
    "triton_matmul": _sizes(m=(1, 150), n=(270,), k=(1, 70), dtype=DTYPES),
    "persistent_matmul": [
        {**TILE, "m": m, "n": n, "k": k, "group": group, "dtype": dtype}
        for (m, n, k), (group, dtype) in zip(
            [(1, 8, 8), (33, 72, 40), (97, 80, 72), (1, 300, 3), (70, 136, 33)],
            [(1, "fp32"), (2, "fp16"), (8, "fp32"), (1, "fp32"), (2, "fp16")],
            strict=True,
        )
    ],
    "triton_autotune": _sizes(m=(1, 40), n=(70,), k=(1, 70), first=(16,), dtype=DTYPES),
    "attention": _sizes(batch=(1,), heads=(2,), length=(1, 33, 200), width=(32,), dtype=DTYPES),
    "reduction": _sizes(n=(1, 127, 20_011), block=(64, 256)),
    "small_kernels": _sizes(mib=(1,), repeats=(1, 3)),
    "utilization": _sizes(mib=(1,), launches=(1, 5)),
}
"""Of each lesson the sizes that it is built with, odd ones among them."""
REFERENCES = {
    "vector_add": "in_torch",
    "fused_softmax": "in_torch",
    "layernorm_gelu": "eager",
    "triton_matmul": "cublas",
    "persistent_matmul": "cublas",
    "triton_autotune": "cublas",
    "attention": "naive",
    "reduction": "torch_sum",
    "small_kernels": "eager",
}
"""Variants of torch; where there is none the lesson sums squares."""
_HELPER = re.compile(r"(?<!def )\b(_\w+)\(")


class OutsideError(Exception):
    """A kernel reads or writes what is not its own."""


class Driver:
    """Of `triton.autotune`, which asks a device how to time: here each configuration runs once, and
    the first is taken.
    """

    def get_benchmarker(self):
        return self._run_once

    def _run_once(self, call, quantiles):
        call()
        return [0.0 for _ in quantiles]


class Memory:
    """Of the arguments of one launch."""

    def __init__(self, tensors):
        self.readable = [_ends(tensor) for tensor in tensors.values()]
        self.writable = [_ends(tensor) for name, tensor in tensors.items() if name in OUTPUTS]
        self.accesses = 0

    def check(self, what, pointers, mask, ranges):
        taken = np.asarray(mask.data).astype(bool)
        addresses = np.broadcast_to(pointers.data, taken.shape)[taken]
        inside = np.zeros(addresses.shape, dtype=bool)
        for first, end in ranges:
            inside |= (addresses >= first) & (addresses < end)
        if not inside.all():
            raise OutsideError(
                f"it {what} {np.count_nonzero(~inside)} elements outside of its tensors"
            )
        self.accesses += 1


@contextmanager
def watched():
    """Launches inside are checked; it gives the names of the kernels that were launched, and went
    to memory.
    """
    launched, memories = set(), []
    run, patch, patched = InterpretedFunction.run, interpreter._patch_lang, set()
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store

    def watched_run(kernel, *args, **kwargs):
        tensors = _tensors({**dict(zip(kernel.arg_names, args, strict=False)), **kwargs})
        for name, tensor in tensors.items():
            assert tensor.is_contiguous()
            if name in OUTPUTS:
                tensor.detach().fill_(torch.nan)
        memories.append(Memory(tensors))
        patched.clear()
        try:
            return run(kernel, *args, **kwargs)
        finally:
            if memories.pop().accesses:
                launched.add(kernel.__name__)

    def patch_once(function):
        # Triton does so in each call of a helper, which takes longer than the helper.
        if function.__module__ in patched:
            return None
        patched.add(function.__module__)
        return patch(function)

    def watched_load(builder, pointers, mask, *rest, **options):
        memories[-1].check("reads", pointers, mask, memories[-1].readable)
        return load(builder, pointers, mask, *rest, **options)

    def watched_store(builder, pointers, value, mask, *rest, **options):
        memories[-1].check("writes", pointers, mask, memories[-1].writable)
        return store(builder, pointers, value, mask, *rest, **options)

    InterpretedFunction.run, interpreter._patch_lang = watched_run, patch_once
    InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store = (
        watched_load,
        watched_store,
    )
    try:
        yield launched
    finally:
        InterpretedFunction.run, interpreter._patch_lang = run, patch
        InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store = load, store


def _tensors(arguments):
    """The tensors of a launch by the names of its arguments, also behind descriptors of the memory
    accelerator.
    """
    behind = {name: getattr(value, "base", None) for name, value in arguments.items()}
    found = {
        name: value if isinstance(value, torch.Tensor) else behind[name]
        for name, value in arguments.items()
    }
    return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}


def _ends(tensor):
    return tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes


def outputs(module, name, variant, chosen, sizes):
    """What a step of a variant gives, and what the one of torch does with the same numbers."""
    lab = triton_lessons.Lab(torch.device("cpu"), 3, chosen)
    torch.manual_seed(0)
    output, inputs = _step(triton_lessons.build(module, lab, variant, **sizes))
    if name not in REFERENCES:
        return output, inputs.square().sum(1)
    torch.manual_seed(0)
    expected, _ = _step(triton_lessons.build(module, lab, REFERENCES[name], **sizes))
    return output, expected


def _step(work):
    returned = work.step()
    return returned if work.output is None else work.output, work.inputs


def cases(module, name):
    """(variant, candidate, sizes) of all that is computed."""
    candidates = len(getattr(module, "_CONFIGS", [0]))
    for sizes in SIZES[name]:
        for variant in triton_lessons.variants(module):
            if variant != REFERENCES.get(name):
                # each candidate at the largest sizes, the first at the others
                largest = sizes == SIZES[name][-1] and variant in ("tuned", "in_triton")
                yield from (
                    (variant, chosen, sizes) for chosen in range(candidates if largest else 1)
                )


def problems(module, name):
    """What is wrong with a lesson, one line for each case."""
    for variant, chosen, sizes in cases(module, name):
        with suppress(triton_lessons.SkippedError):
            error = error_of(*outputs(module, name, variant, chosen, sizes))
            if not error <= ALLOWED[sizes.get("dtype", "fp32")]:
                yield f"{variant}, candidate {chosen}, {sizes}: error {error:.1e}"


def error_of(output, expected):
    """The largest difference, relative to the largest value; infinite where there is a NaN, or one
    infinity.
    """
    assert output.shape == expected.shape, f"{output.shape} in place of {expected.shape}"
    if not torch.isfinite(output).all():
        return float("inf")
    return float((output.detach().double() - expected).abs().max() / expected.abs().max())


def kernels_of(module, text):
    """Kernels that are launched: those that no other one calls."""
    functions = {
        value.__name__ for value in vars(module).values() if isinstance(value, InterpretedFunction)
    }
    return functions - set(_HELPER.findall(text))


def result_of(name):
    module = triton_lessons.lesson(name)
    if name in ("triton_matmul", "persistent_matmul", "triton_autotune"):
        module._DTYPES["fp32"] = torch.float32
    text = Path(module.__file__).read_text()
    with watched() as launched:
        wrong = list(problems(module, name))
    kernels = {"kernels": sorted(kernels_of(module, text)), "launched": sorted(launched)}
    return {"lesson": name, "problems": wrong, **kernels}


if __name__ == "__main__":
    driver.set_active(Driver())
    for lesson in sys.argv[1:] or SIZES:
        print(json.dumps(result_of(lesson)), flush=True)
