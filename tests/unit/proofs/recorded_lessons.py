"""Lessons as they were recorded on an H200, for lines of verify.py."""

import lzma
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from gpulab.session.scripting import load

RECORDED = Path(__file__).parents[2] / "corpus" / "h200"


def recorded_run(place, name, *arguments):
    """Instead of a run, the one that was recorded: its exit code and its result."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.jsonl"
        path.write_bytes(lzma.decompress((RECORDED / f"{name}.jsonl.xz").read_bytes()))
        report = msgspec.to_builtins(load(path))
    return report["exit_code"], report
