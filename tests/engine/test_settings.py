"""What a build may set for the whole process by accident: each is known, said by its name, and put
back.
"""

import decimal
import gc
import locale
import os
import types
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import torch

from gpulab.engine.build import settings

ELSEWHERE = {
    # of devices that the lab does not measure, and of languages whose kernels nobody has replaced
    "backends.cuda.preferred_rocm_fa_library",
    "backends.mps.set_flags",
    "backends.python_native.enable_dispatch_keys",
    "backends.python_native.enable_operations",
}


def settable(path, module, seen):
    """Dotted paths of all that can be set in a module of torch's backends."""
    if id(module) in seen:
        return
    seen.add(id(module))
    for kind in type(module).__mro__:
        for name, value in vars(kind).items():
            if type(value).__name__ in ("ContextProp", "_QEngineProp"):
                yield f"{path}.{name}"
    for name, value in vars(module).items():
        if name.startswith("_") or name == "m":
            continue
        if isinstance(value, types.FunctionType) and name.startswith(
            ("set_", "enable_", "allow_", "preferred_")
        ):
            if name != "set_flags":  # it sets the attributes above
                yield f"{path}.{name}"
        elif type(value).__module__.startswith("torch.backends") or (
            isinstance(value, types.ModuleType) and "torch.backends" in value.__name__
        ):
            yield from settable(f"{path}.{name}", value, seen)


def test_all_that_can_be_set_in_torchs_backends_is_known():
    found = set(settable("backends", torch.backends, set()))
    assert len(found) >= 20
    known = {name.removeprefix("torch.") for name in settings.read()}
    assert found - known - ELSEWHERE == set()


def change_locale():
    other = "C.UTF-8" if locale.setlocale(locale.LC_NUMERIC) == "C" else "C"
    locale.setlocale(locale.LC_NUMERIC, other)


def test_a_step_may_turn_on_the_collection_of_garbage_that_the_lab_turned_off():
    gc.disable()
    try:
        before = settings.read()
        gc.enable()
        assert settings.put_back(before) == []
    finally:
        gc.enable()


def test_a_build_that_makes_its_process_nice_is_named():
    """In a thread, which Linux makes nice by itself, since not everybody may undo it."""

    def names():
        before = settings.read()
        os.nice(1)
        return settings.put_back(before)

    with ThreadPoolExecutor(1) as pool:
        assert "os.setpriority" in pool.submit(names).result()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("torch.backends.opt_einsum.enabled", lambda: set_einsum(False)),
        ("torch.backends.mkldnn.deterministic", lambda: set_mkldnn(True)),
        ("torch.set_flush_denormal", lambda: torch.set_flush_denormal(True)),
        ("torch.set_default_dtype", lambda: torch.set_default_dtype(torch.float64)),
        (
            "torch.use_deterministic_algorithms",
            lambda: torch.use_deterministic_algorithms(True),
        ),
        ("torch.backends.mha.set_fastpath_enabled", lambda: set_fastpath(False)),
        (
            "torch.sparse.check_sparse_tensor_invariants",
            torch.sparse.check_sparse_tensor_invariants.enable,
        ),
        ("numpy.seterr", lambda: numpy.seterr(all="raise")),
        ("gc.disable", gc.disable),
        ("decimal.getcontext", lambda: setattr(decimal.getcontext(), "prec", 50)),
        ("locale.setlocale", change_locale),
    ],
)
def test_a_setting_that_changed_is_named_and_put_back(name, change):
    before = settings.read()
    try:
        change()
        assert name in settings.put_back(before)
    finally:
        settings.put_back(before)
    assert settings.put_back(before) == []


def set_einsum(on):
    torch.backends.opt_einsum.enabled = on


def set_mkldnn(on):
    torch.backends.mkldnn.deterministic = on


def set_fastpath(on):
    torch.backends.mha.set_fastpath_enabled(on)
