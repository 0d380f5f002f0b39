"""The checks of a machine: what is there, and below what is not, what it would enable and what
fixes it.
"""

import pytest
from conftest import printed
from found import finding

from gpulab.core.machine import CheckStatus, MachineCheck
from gpulab.features.doctor.view import ENABLES, doctor

OK, MISSING, BROKEN = CheckStatus.OK, CheckStatus.MISSING, CheckStatus.BROKEN


def lines_of(*checks, width=120):
    return [line.rstrip() for line in printed(doctor(checks), width).splitlines()]


def test_a_row_a_check_with_its_status():
    lines = lines_of(
        MachineCheck(
            name="gpulab", status=OK, result=finding("versions", gpulab="0.1.0", python="3.11.7")
        ),
        MachineCheck(
            name="JAX",
            status=MISSING,
            result=finding("not_there"),
            enables="jax_lesson",
            fix=finding("run_command", command="pip install jax"),
        ),
        MachineCheck(
            name="driver",
            status=BROKEN,
            result=finding("driver_was_updated"),
            fix=finding("reboot"),
        ),
    )
    assert lines == [
        "ok       gpulab  0.1.0, Python 3.11.7",
        "missing  JAX     not installed",
        "                 enables: the JAX lesson",
        "                 fix: pip install jax",
        "broken   driver  the driver was updated: reboot, or reload its module",
        "                 fix: reboot",
    ]


@pytest.mark.parametrize("enables", ENABLES)
def test_every_thing_that_a_fix_enables_has_words(enables):
    check = MachineCheck(name="part", status=MISSING, result=finding("not_there"), enables=enables)
    assert lines_of(check)[1].strip() == f"enables: {ENABLES[enables]}"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            {
                "columns": 80,
                "lines": 24,
                "unicode": True,
                "locale": "C.UTF-8",
                "colours": 256,
                "tmux": 0,
                "ssh": 1,
            },
            "80x24, UTF-8, 256 colours, over SSH: the screen is drawn twice a second",
        ),
        (
            {
                "columns": None,
                "lines": None,
                "unicode": False,
                "locale": "C",
                "colours": 0,
                "tmux": 1,
                "ssh": 0,
            },
            "stdout is not a terminal, ASCII (locale C), no colours, in tmux",
        ),
        (
            {
                "columns": 80,
                "lines": 24,
                "unicode": True,
                "locale": "",
                "colours": 1 << 24,
                "tmux": 0,
                "ssh": 0,
            },
            "80x24, UTF-8, 16 million colours",
        ),
    ],
)
def test_what_the_terminal_can_show(values, text):
    check = MachineCheck(name="terminal", status=OK, result=finding("terminal", **values))
    assert lines_of(check) == [f"ok  terminal  {text}"]


def test_devices_with_their_memory():
    cpu = finding(
        "cpu_device", device="AMD EPYC", cores=2, capability="AVX512", memory_bytes=24 << 30
    )
    gpu = finding(
        "gpu_device", device="NVIDIA H200", capability="9.0", memory_bytes=140 << 30, uuid="GPU-1"
    )
    lines = lines_of(
        MachineCheck(name="cpu", status=OK, result=cpu),
        MachineCheck(name="cuda:0", status=OK, result=gpu),
    )
    assert lines == [
        "ok  cpu     AMD EPYC, 2 usable cores, AVX512, 24.0 GiB",
        "ok  cuda:0  NVIDIA H200, compute capability 9.0, 140 GiB, GPU-1",
    ]


def test_a_long_line_is_folded_within_the_width():
    check = MachineCheck(
        name="driver", status=OK, result=finding("file", path="/home/someone/" + "x" * 200)
    )
    lines = lines_of(check, width=60)
    assert max(map(len, lines)) <= 60
    assert "".join(line[12:] for line in lines) == "/home/someone/" + "x" * 200
