"""`--doctor` finds what is there, says what is missing and what mends it, and survives a probe that does not."""

import json
import sys

import pytest
from conftest import printed

from gpulab.model.machine import DriverCheck, Probe
from gpulab.run import doctor
from gpulab.views.doctor import doctor as table
from gpulab.views.text import Glyphs


def test_it_says_what_is_there_and_what_mends_the_rest(lab):
    done = lab.call("--doctor", "--json")
    assert done.code == 0
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert {"gpulab", "torch", "driver", "cpu", "CuPy", "Triton", "JAX", "compiler", "terminal", "run files"} <= set(
        found
    )
    assert found["torch"]["status"] == "ok"
    assert "core" in found["cpu"]["found"]
    assert all(one["mend"] and one["enables"] for one in found.values() if one["status"] != "ok")
    printed = lab.call("--doctor").stdout
    assert all(one["found"][:30].split()[0] in printed for one in found.values())


def test_what_is_missing_is_named(lab):
    lab.env |= {"PATH": "", "CXX": "", "LANG": "C", "XDG_STATE_HOME": "/dev/null"}
    lab.env = {name: value for name, value in lab.env.items() if not name.startswith("LC_")}
    done = lab.call("--doctor", "--json")
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert done.code == 3
    assert found["compiler"]["status"] == "missing"
    assert found["run files"]["status"] == "broken"
    assert found["terminal"]["mend"] == "export LC_ALL=C.UTF-8"
    assert lab.call("--doctor").stdout.isascii()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os.abort()", "ended with -6"),
        ("raise SystemExit('no such thing')", "no such thing"),
        ("print('not json')", "cannot be read"),
        ("import time; time.sleep(60)", "the driver hangs"),
    ],
)
def test_a_probe_that_fails_is_a_finding(monkeypatch, code, message):
    monkeypatch.setattr(doctor, "_PROBE", (sys.executable, "-c", code))
    monkeypatch.setattr(doctor, "_PROBE_S", 1.0)
    torch = next(one for one in doctor.examine() if one.name == "torch")
    assert torch.status == "broken"
    assert message in torch.found


@pytest.mark.parametrize(
    ("cuda", "have", "status", "mend"),
    [
        ("13.0", "cupy-cuda13x 14.2", "ok", ""),
        ("13.0", "cupy-cuda12x 14.2", "broken", "pip uninstall -y cupy-cuda12x && pip install 'gpulab[cuda13]'"),
        ("12.8", "cupy-cuda13x 14.2", "broken", "pip uninstall -y cupy-cuda13x && pip install 'gpulab[cuda12]'"),
        ("12.8", None, "missing", "pip install 'gpulab[cuda12]'"),
        (None, None, "missing", "a machine with an NVIDIA GPU"),
    ],
)
def test_the_cupy_that_fits_the_torch_is_named(monkeypatch, cuda, have, status, mend):
    monkeypatch.setattr("gpulab.run.needs.torch_cuda", lambda: cuda)
    monkeypatch.setattr(doctor, "torch_cuda", lambda: cuda)
    monkeypatch.setattr(doctor, "installed", lambda *_: have)
    found = doctor._cupy()
    assert (found.status, found.mend) == (status, mend)


@pytest.mark.parametrize(
    ("probed", "device", "hidden", "status", "mend"),
    [
        ({"cuda": "13.0", "cuda_error": "Found no NVIDIA driver"}, False, None, "missing", "a machine with"),
        ({"cuda": "13.0", "cuda_error": "Found no NVIDIA driver"}, True, None, "broken", "reboot"),
        ({"cuda": "13.0", "cuda_error": "no device"}, True, "", "missing", "unset CUDA_VISIBLE_DEVICES"),
        ({}, True, None, "missing", "install the NVIDIA driver"),
    ],
)
def test_a_driver_is_broken_only_where_there_is_a_device(monkeypatch, probed, device, hidden, status, mend):
    monkeypatch.setattr(doctor, "has_gpu", lambda: device)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    found = doctor._driver(Probe(**probed), DriverCheck(why="none", present=False))
    assert found.status == status
    assert mend in found.mend


def test_the_table_shows_the_mend(monkeypatch):
    monkeypatch.setattr(doctor, "_PROBE", (sys.executable, "-c", "raise SystemExit('[red]no')"))
    text = printed(table(doctor.examine(), Glyphs()), 80)
    assert "[red]no" in text
    assert "mend: pip install --force-reinstall torch" in text
