"""What a machine lacks for a scenario, as a finding, without importing torch or the driver's
library.
"""

import pytest
from found import finding

from gpulab.catalog import needs
from gpulab.catalog.needs import NO_TORCH, default_device, first_missing, fitting_cupy, missing

CACHED = (needs._no_cuda, needs._no_cupy, needs._no_triton, needs._no_jax, needs._no_compiler)


@pytest.fixture
def machine(monkeypatch):
    """A machine with this build of torch, with or without a GPU, and these packages."""

    def set_up(cuda="13.0", gpu=True, packages=(), hidden=None):
        monkeypatch.setattr(needs, "torch_cuda", lambda: cuda)
        monkeypatch.setattr(needs, "has_gpu", lambda: gpu)
        monkeypatch.setattr(
            needs,
            "installed",
            lambda *names: next((f"{n} 1.0" for n in names if n in packages), None),
        )
        monkeypatch.setattr(needs, "_is_importable", lambda module: module in packages)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if hidden is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        for check in CACHED:
            check.cache_clear()

    yield set_up
    for check in CACHED:
        check.cache_clear()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, "version.py, No such file or directory"),
        (b"cuda = (", "version.py, '(' was never closed"),
        (b"cuda = None\0", "version.py, source code string cannot contain null bytes"),
    ],
)
def test_a_torch_that_is_broken_is_seen_without_its_import(tmp_path, monkeypatch, version, message):
    if version is not None:
        (tmp_path / "version.py").write_bytes(version)
    monkeypatch.setattr(needs, "_torch_folder", lambda: str(tmp_path))
    for cached in (needs._torch_versions, needs._no_cuda):
        cached.cache_clear()
    broken = needs.broken_torch()
    of_cuda = missing("cuda")
    of_all = first_missing(())
    for cached in (needs._torch_versions, needs._no_cuda):
        cached.cache_clear()
    assert of_cuda == of_all == broken
    assert broken == finding("torch_broken", folder=str(tmp_path), message=message, code=None)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"cuda": NO_TORCH}, "torch_not_installed"),
        ({"cuda": None}, "torch_without_cuda"),
        ({"hidden": ""}, "devices_hidden"),
        ({"hidden": "-1"}, "devices_hidden"),
        ({"gpu": False}, "no_gpu"),
        ({"hidden": "0"}, None),
        ({}, None),
    ],
)
def test_what_keeps_from_cuda_keeps_from_cupy_and_triton_too(machine, options, code):
    machine(packages=("triton", "cupy-cuda13x", "cuda-bindings"), **options)
    reasons = {need: missing(need) for need in ("cuda", "cupy", "triton")}
    assert {reason and reason.code for reason in reasons.values()} == {code}
    assert default_device() == ("cuda:0" if code is None else "cpu")


def test_a_package_that_is_missing_comes_with_how_to_install_it(machine):
    machine(cuda="12.8")
    assert missing("cupy") == finding("not_installed", package="CuPy", install="gpulab[cuda12]")
    assert missing("triton") == finding("not_installed", package="Triton", install="triton")
    assert missing("jax") == finding("not_installed", package="JAX", install="jax")
    machine(packages=("jax", "cupy-cuda13x"))
    assert missing("cupy") == finding(
        "not_installed", package="cuda-bindings", install="gpulab[cuda13]"
    )
    assert missing("jax") is None
    assert fitting_cupy() == "cuda13"


def test_a_compiler_is_the_one_that_torch_would_take(machine, monkeypatch):
    machine()
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(
        needs.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "clang++" else None
    )
    assert missing("compiler") is None
    assert needs.compiler() == "/usr/bin/clang++"
    monkeypatch.setattr(needs.shutil, "which", lambda name: None)
    needs._no_compiler.cache_clear()
    assert missing("compiler") == finding("compiler_not_installed")


def test_the_first_need_that_is_not_met_is_named(machine):
    machine(gpu=False)
    assert first_missing(("jax", "cuda")) == finding(
        "not_installed", package="JAX", install="jax", need="jax"
    )
    assert first_missing(("cuda", "jax")) == finding("no_gpu", need="cuda")
    assert first_missing(()) is None


def test_a_run_on_the_cpu_meets_no_need_of_a_gpu(machine):
    machine(packages=("triton", "jax"))
    assert first_missing(("triton",), "cuda:0") is None
    assert first_missing(("jax", "triton"), "cpu") == finding("run_on_cpu", need="triton")
    assert first_missing(("jax",), "cpu") is None
