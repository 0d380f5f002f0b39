"""The checks of a machine: what is there, and below what is not, what it would enable and what
fixes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.machine import CheckStatus, MachineCheck
from gpulab.draw.blocks import Table, Text, rows_table
from gpulab.report.sentences import sentence

_STYLES = {CheckStatus.OK: "green", CheckStatus.MISSING: "yellow", CheckStatus.BROKEN: "bold red"}

ENABLES = {
    "everything": "everything",
    "gpu_scenarios": "every scenario on a GPU",
    "telemetry_and_gpu_scenarios": "telemetry, and every scenario on a GPU",
    "cuda_lessons": "the CUDA C++ lessons",
    "kernel_code": "registers and machine code of CUDA C++ kernels",
    "triton_lessons": "the Triton lessons, torch.compile on a GPU",
    "jax_lesson": "the JAX lesson",
    "compile_on_cpu": "torch.compile on a CPU",
    "finer_drawing": "finer drawing; everything has an ASCII form",
    "runs_without_output": "a history of runs",
}
"""What a fix makes possible, by its code."""


def doctor(checks: Sequence[MachineCheck]) -> Table:
    """A row a check."""
    table = rows_table()
    for check in checks:
        text = Text(sentence(check.result), overflow="fold")
        if check.enables:
            text.append(f"\nenables: {ENABLES[check.enables]}", "dim")
        if check.fix:
            text.append(f"\nfix: {sentence(check.fix)}", "bold")
        table.add_row(Text(check.status, _STYLES[check.status]), Text(check.name, "bold"), text)
    return table
