"""What the answers of the probes mean: checks of values, and the words for them."""

import pytest
from conftest import printed
from found import finding

from gpulab.catalog.needs import NO_TORCH
from gpulab.core.machine import CheckStatus, Device, DriverProbe, MachineCheck, TorchProbe
from gpulab.features.doctor import report as doctor
from gpulab.features.doctor.view import doctor as table

OK, MISSING, BROKEN = CheckStatus
GPU = Device(kind="cuda", name="NVIDIA H200", uuid="GPU-1", memory_bytes=140 << 30)
NO_ANSWER = DriverProbe(problem=finding("no_driver"), present=False)


@pytest.fixture
def machine(monkeypatch):
    """A machine with or without an NVIDIA device, and a torch for a CUDA version."""

    def machine(*, gpu=False, cuda=None, hidden=None, cupy=None):
        monkeypatch.setattr(doctor, "has_gpu", lambda: gpu)
        monkeypatch.setattr(doctor, "torch_cuda", lambda: cuda)
        monkeypatch.setattr("gpulab.catalog.needs.torch_cuda", lambda: cuda)
        monkeypatch.setattr(doctor, "installed", lambda *_: cupy)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if hidden is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)

    return machine


def check_of(name, status):
    return MachineCheck(name=name, status=status, result="not installed")


@pytest.mark.parametrize(
    ("torch", "driver", "can_measure"),
    [
        (OK, OK, True),
        (OK, MISSING, True),
        (OK, BROKEN, False),
        (MISSING, OK, False),
        (BROKEN, OK, False),
    ],
)
def test_nothing_can_be_measured_without_torch_or_where_something_is_broken(
    torch, driver, can_measure
):
    assert doctor.can_measure([check_of("torch", torch), check_of("driver", driver)]) is can_measure


@pytest.mark.parametrize(
    ("options", "torch", "status", "result", "fix"),
    [
        ({"cuda": NO_TORCH}, TorchProbe(), MISSING, "not installed", "pip install torch"),
        ({}, TorchProbe(torch="2.9"), OK, "2.9, a build without CUDA", None),
        (
            {"cuda": "13.0", "gpu": True},
            TorchProbe(torch="2.9", cuda="13.0"),
            OK,
            "2.9, built for CUDA 13.0",
            None,
        ),
        (
            {"gpu": True},
            TorchProbe(torch="2.9"),
            MISSING,
            "2.9, a build without CUDA, in a machine with an NVIDIA device",
            "pip install --force-reinstall torch",
        ),
        (
            {},
            TorchProbe(
                problem=finding("torch_broken", folder="torch", message="no libcudart", code=None)
            ),
            BROKEN,
            "torch in torch is broken (no libcudart); pip install --force-reinstall torch",
            "pip install --force-reinstall torch",
        ),
        (
            {},
            TorchProbe(problem=finding("probe_hangs", timeout_s=120.0)),
            BROKEN,
            "no answer within 120 s: the driver hangs",
            "reboot",
        ),
    ],
)
def test_torch_is_there_works_and_fits_the_machine(machine, options, torch, status, result, fix):
    machine(**options)
    check = doctor.check_torch(torch, NO_ANSWER)
    assert (check.status, check.result, check.fix) == (status, result, fix)
    assert (check.enables is None) == (status == OK)


@pytest.mark.parametrize(
    ("options", "torch", "driver", "status", "result", "fix"),
    [
        # A driver is broken only where there is a device.
        ({}, TorchProbe(cuda_error="Found no NVIDIA driver"), NO_ANSWER, MISSING, "none, and no NVIDIA device", "a machine"),
        ({"gpu": True}, TorchProbe(cuda_error="no driver"), NO_ANSWER, BROKEN, "unknown; torch: no driver", "reboot"),
        ({"gpu": True}, TorchProbe(), NO_ANSWER, MISSING, "an NVIDIA device without its driver", "install the NVIDIA driver"),
        ({"gpu": True, "hidden": ""}, TorchProbe(), NO_ANSWER, MISSING, "hides every device", "unset CUDA_VISIBLE_DEV"),
        ({"gpu": True}, TorchProbe(), DriverProbe(version="580", devices=("H200",)), OK, "580, H200", None),
        # It answers torch, though its library is not there: in some containers.
        ({}, TorchProbe(devices=(GPU,), capabilities=("9.0",)), NO_ANSWER, OK, "working, version not shown here", None),
        ({"gpu": True}, TorchProbe(), DriverProbe(problem=finding("driver_was_updated"), fix="reboot"), BROKEN, "the driver was updated",
         "reboot"),
        ({"gpu": True}, TorchProbe(), DriverProbe(problem=finding("gpu_lost"), fix="reboot"), BROKEN, "GPU lost", "reboot"),
        ({"gpu": True}, TorchProbe(), DriverProbe(problem=finding("driver_error", message="x")), BROKEN, "the NVIDIA driver reports: x",
         "nvidia-smi"),
    ],
)  # fmt: skip
def test_the_driver_answers_its_own_library_and_torch(
    machine, options, torch, driver, status, result, fix
):
    machine(**options)
    check = doctor.check_driver(torch, driver)
    assert check.status == status
    assert result in check.result
    assert (check.fix is None) == (status == OK)
    assert fix is None or fix in check.fix


@pytest.mark.parametrize(
    ("cuda", "package", "status", "fix"),
    [
        ("13.0", "cupy-cuda13x 14.2", OK, None),
        ("13.0", "cupy 14.2", OK, None),  # built here
        (
            "13.0",
            "cupy-cuda12x 14.2",
            BROKEN,
            "pip uninstall -y cupy-cuda12x && pip install 'gpulab[cuda13]'",
        ),
        ("12.8", None, MISSING, "pip install 'gpulab[cuda12]'"),
        (None, None, MISSING, "a machine with an NVIDIA GPU"),
        (NO_TORCH, "cupy-cuda13x 14.2", MISSING, "a machine with an NVIDIA GPU"),
    ],
)
def test_the_cupy_that_fits_the_torch_is_named(machine, cuda, package, status, fix):
    machine(cuda=cuda, cupy=package)
    check = doctor.check_cupy(NO_ANSWER)
    assert (check.status, check.fix) == (status, fix)
    assert package is None or package in check.result


@pytest.mark.parametrize(
    ("driver", "fix"),
    [
        (NO_ANSWER, "a machine with an NVIDIA GPU"),
        (DriverProbe(version="580"), "pip install --force-reinstall torch"),
        (
            DriverProbe(problem=finding("gpu_lost"), fix="reboot"),
            "pip install --force-reinstall torch",
        ),
        (DriverProbe(problem=finding("probe_failed", message="x")), "a machine with an NVIDIA GPU"),
    ],
)
def test_where_a_driver_speaks_of_a_gpu_no_other_machine_is_needed(machine, driver, fix):
    machine(cuda=None)
    assert doctor.check_cupy(driver).fix == fix


def test_the_table_shows_what_a_fix_enables_and_nothing_that_drives_a_terminal(machine):
    machine()
    hostile = finding("torch_broken", folder="torch", message="[red]no\x1b[31m", code=None)
    text = printed(
        table(
            [
                doctor.check_torch(TorchProbe(problem=hostile), NO_ANSWER),
                doctor.check_cupy(NO_ANSWER),
            ]
        ),
        80,
    )
    assert "[red]no" in text
    assert "\x1b" not in text
    lines = [line.strip() for line in text.splitlines()]
    assert "fix: pip install --force-reinstall torch" in lines
    assert "enables: everything" in lines
    assert "enables: the CUDA C++ lessons" in lines
    assert lines[0].startswith("broken")
