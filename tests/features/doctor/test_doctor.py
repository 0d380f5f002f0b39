"""`--doctor` finds what is there, says what is missing and what fixes it, and survives a probe that
does not.
"""

import json
import os
import sys

import pytest

from gpulab.core.machine import DriverProbe, MachineCheck, TorchProbe
from gpulab.features.doctor.report import check_driver, check_torch, probe_driver, probe_torch


def test_the_table_and_the_json_say_what_is_there_and_what_fixes_the_rest(lab):
    lab.env["XDG_STATE_HOME"] = os.fsdecode(bytes(lab.folder) + b"/state\xff\x1b[31m")
    process = lab.call("--doctor", "--json", "out.json")
    assert "\x1b" not in process.stdout
    checks = {check["name"]: check for check in json.loads((lab.folder / "out.json").read_text())}
    parts = {
        "gpulab",
        "torch",
        "driver",
        "cpu",
        "CuPy",
        "NVRTC",
        "Triton",
        "JAX",
        "compiler",
        "terminal",
        "run files",
        "counts: declared work",
        "counts: torch's counts",
        "counts: GPM",
        "counts: PM sampling",
        "counts: ncu",
    }
    assert parts <= set(checks)
    assert all(set(check) == set(MachineCheck.__struct_fields__) for check in checks.values())
    assert checks["torch"]["status"] == "ok"
    assert process.code == (
        3 if any(check["status"] == "broken" for check in checks.values()) else 0
    )
    assert "usable core" in checks["cpu"]["result"]
    assert all(
        check["fix"] and check["enables"] for check in checks.values() if check["status"] != "ok"
    )
    rows = [" ".join(line.split()) for line in process.stdout.splitlines()]
    for name, check in checks.items():
        assert any(row.startswith(f"{check['status']} {name} ") for row in rows)
    assert process.stdout.count("fix: ") == sum(
        check["status"] != "ok" for check in checks.values()
    )


def test_each_way_to_count_says_whether_it_works_here_and_what_would_allow_it(lab, driver):
    driver("gpus=2")
    lab.env |= {"XDG_DATA_HOME": str(lab.folder), "PATH": str(lab.folder)}
    lab.call("--doctor", "--json", "out.json")
    checks = {check["name"]: check for check in json.loads((lab.folder / "out.json").read_text())}
    gpm, sampling, ncu = (checks[f"counts: {name}"] for name in ("GPM", "PM sampling", "ncu"))
    assert (gpm["status"], gpm["result"]) == ("ok", "by NVML, of 2 of 2 GPUs")
    folder = lab.folder / "gpulab" / "counters"
    assert sampling["fix"].startswith(f"python3 -m venv {folder} && {folder}/bin/pip install")
    assert ncu["fix"] == "install Nsight Compute, and put it on PATH"
    driver("nosup=gpm")
    lab.call("--doctor", "--json", "out.json")
    checks = {check["name"]: check for check in json.loads((lab.folder / "out.json").read_text())}
    assert checks["counts: GPM"]["fix"] == "a Hopper or newer GPU"


def test_a_torch_for_rocm_runs_on_the_cpu_and_that_is_said(lab):
    (lab.folder / "torch").mkdir()
    lab.write("torch/version.py", "__version__ = '2.13'\ncuda = None\nhip = '7.1'\n")
    lab.write("torch/__init__.py", "")
    lab.env["PYTHONPATH"] = str(lab.folder)
    printed = " ".join(lab.call("--doctor").stdout.split())
    assert "torch for ROCm: 7.1; scenarios run on the CPU" in printed


def test_what_is_missing_or_broken_is_named(lab):
    (lab.folder / "torch").mkdir()
    lab.write("torch/version.py", "cuda = None\n")
    lab.write("torch/__init__.py", "raise OSError('libtorch.so: cannot open shared object file')\n")
    lab.env |= {
        "PATH": "",
        "CXX": "",
        "LANG": "C",
        "XDG_STATE_HOME": "/dev/null",
        "PYTHONPATH": str(lab.folder),
    }
    lab.env = {name: value for name, value in lab.env.items() if not name.startswith("LC_")}
    process = lab.call("--doctor", "--json", "out.json")
    checks = {check["name"]: check for check in json.loads((lab.folder / "out.json").read_text())}
    assert process.code == 3
    assert process.stdout.isascii()
    assert checks["torch"]["status"] == "broken"
    assert "libtorch.so" in checks["torch"]["result"]
    assert checks["compiler"]["status"] == "missing"
    assert checks["run files"]["status"] == "broken"
    assert checks["run files"]["fix"].startswith("export XDG_STATE_HOME=")
    assert checks["terminal"]["fix"] == "export LC_ALL=C.UTF-8"
    assert "fix: export LC_ALL=C.UTF-8" in process.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "code", "problem", "can_run"),
    [
        ("cuda = (", "", "'(' was never closed", 0),
        ("cuda = None", "import os; os._exit(0)", "its import exited with 0", 1),
    ],
)
def test_a_broken_torch_is_named_by_every_command(lab, version, code, problem, can_run):
    (lab.folder / "site" / "torch").mkdir(parents=True)
    lab.write("plain.py", "def step():\n    pass\n")
    lab.write("site/torch/__init__.py", code)
    lab.write("site/torch/version.py", version)
    lab.env["PYTHONPATH"] = str(lab.folder / "site")
    words = f"torch in {lab.folder / 'site' / 'torch'} is broken"
    listed = lab.call("--list")
    run = lab.call("--run", "plain.py:step", "--telemetry", "off")
    assert (listed.code, run.code) == (0, 3)
    assert can_run or words in listed.stdout
    assert words in run.stdout
    assert problem in run.stdout
    assert run.stdout.count("pip install --force-reinstall torch") == 1
    doctor = lab.call("--doctor", "--json")
    (check,) = [check for check in json.loads(doctor.stdout) if check["name"] == "torch"]
    assert (doctor.code, check["status"]) == (3, "broken")
    assert words in check["result"]
    assert "Traceback" not in listed.stderr + doctor.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "timeout_s", "message"),
    [
        ("import os; os.abort()", 30.0, "with -6"),
        ("raise SystemExit('no such thing')", 30.0, "no such thing"),
        ("print('not json')", 30.0, "cannot be read"),
        ("import time; time.sleep(60)", 0.7, "the driver hangs"),
    ],
)
def test_a_probe_that_fails_is_a_check_that_says_so(code, timeout_s, message):
    command = (sys.executable, "-S", "-c", code)
    checks = [
        check_torch(probe_torch(command, timeout_s=timeout_s), DriverProbe()),
        check_driver(TorchProbe(), probe_driver(command, timeout_s=timeout_s)),
    ]
    assert [check.status for check in checks] == ["broken", "broken"]
    assert all(message in check.result for check in checks)


def test_a_probe_that_cannot_be_started_is_a_check_that_says_so():
    check = check_torch(probe_torch(("/nothing/there",)), DriverProbe())
    assert "/nothing/there" in check.result


@pytest.mark.parametrize(
    ("behaviour", "status", "text", "fix"),
    [
        (
            "gpus=2",
            "ok",
            "999.01, NVIDIA Stand-in H100 (GPU-stand-in-0), NVIDIA Stand-in H100 (GPU-stand-in-1)",
            None,
        ),
        (
            "init=18",
            "broken",
            "the driver was updated: reboot, or reload its module",
            "reboot, or reload its module: rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; nvidia-smi",
        ),
        ("lost=0", "broken", "GPU lost: see its Xid line in the kernel log (dmesg)", "reboot"),
        (
            "gpus=2,lost=12",
            "broken",
            "GPU lost: see its Xid line in the kernel log (dmesg)",
            "reboot",
        ),
        (
            "gpus=1,nosup=util+mem+power+clock+temp",
            "ok",
            "999.01, NVIDIA Stand-in H100 (GPU-stand-in-0)",
            None,
        ),
    ],
)
def test_the_driver_is_explained(standin, monkeypatch, behaviour, status, text, fix):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(standin))
    monkeypatch.setenv("STANDIN", behaviour)
    check = check_driver(TorchProbe(), probe_driver())
    assert (check.status, check.result, check.fix) == (status, text, fix)


def test_without_a_library_there_is_no_driver_that_could_be_broken(tmp_path, monkeypatch):
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    probe = probe_driver()
    assert (probe.present, probe.problem.code) == (False, "no_driver")
