"""Kernels of the lessons in Triton's interpreter, against float64: `python
tests/scenarios/triton/interpreted.py [--spoiled] [LESSON ...]`.

It prints a line of JSON for each lesson, or for each of its spoiled kernels
(`spoiled_kernels.py`), which the same checks have to find wrong. A process of its own: whether
kernels are interpreted is fixed when Triton is imported.

Each address that a kernel reads or writes is compared with the memory of its arguments, before it
is used: reads have to be inside a tensor, and writes inside one that is an output. Outputs are NaN
before the launch.
"""

from __future__ import annotations

import os

# the arrays are small
os.environ |= {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import json
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path

import lesson_checks
import numpy as np
import torch
import triton_lessons
from spoiled_kernels import SPOILED
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder

OUTPUTS = {"out", "c", "sums"}
"""Arguments of the lessons' kernels that are written to."""
_HELPER = re.compile(r"(?<!def )\b(_\w+)\(")


class OutsideError(Exception):
    """A kernel reads or writes what is not its own."""


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


def problems(module, name, worst):
    """What is wrong with a lesson, one line for each case; `worst` receives the cases with their
    errors.
    """
    torch.manual_seed(0)
    for case, compute, tolerance in lesson_checks.CHECKS[name](module):
        try:
            error = error_of(*compute())
        except Exception as problem:  # of any kind: what a spoiled kernel does is not known
            yield f"{case}: {type(problem).__name__}: {problem}"
            worst[case] = None
            continue
        worst[case] = error
        if not error <= tolerance:
            yield f"{case}: error {error:.1e}, where {tolerance:.1e} is allowed"


def error_of(output, expected):
    """The largest difference, relative to the largest value; infinite where there is a NaN, or one
    infinity.
    """
    assert output.shape == expected.shape, (
        f"{tuple(output.shape)} in place of {tuple(expected.shape)}"
    )
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
    module, worst = triton_lessons.lesson(name), {}
    text = Path(module.__file__).read_text()
    with watched() as launched:
        wrong = list(problems(module, name, worst))
    kernels = {"kernels": sorted(kernels_of(module, text)), "launched": sorted(launched)}
    return {"lesson": name, "cases": worst, "problems": wrong, **kernels}


def result_of_spoiled(name, spoiled, folder):
    """The first problem of a lesson in which a text was replaced; None where the checks find
    none.
    """
    text = (triton_lessons.SCENARIOS / f"{name}.py").read_text()
    path = Path(folder) / f"{name}_{spoiled.replace(' ', '_')}.py"
    path.write_text(text.replace(*SPOILED[name][spoiled]))
    with watched():
        problem = next(problems(triton_lessons.load(path), name, {}), None)
    return {"lesson": name, "spoiled": spoiled, "problem": problem}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spoiled", action="store_true")
    parser.add_argument("lessons", nargs="*", default=list(lesson_checks.CHECKS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.lessons:
            if not options.spoiled:
                print(json.dumps(result_of(name)), flush=True)
                continue
            for spoiled in SPOILED[name]:
                print(json.dumps(result_of_spoiled(name, spoiled, folder)), flush=True)


if __name__ == "__main__":
    main()
