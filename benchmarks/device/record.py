"""Record lessons on this machine's device, as `gpulab/recordings` ships them.

    python benchmarks/device/record.py NAME [NAME ...] [--device cuda:0] [--ncu]

A default run of each, with --ncu with the counters of its kernels. Its file is packed into gpulab/recordings/KIND (h100, h200, ...), in the place
of the one that is there, with the paths of this machine shortened; a run that has another exit code
than 0, or is larger than what ships may be, is not kept. Then `python tests/recorded.py`, after a
look at what differs.
"""

import argparse
import lzma
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import gpulab

sys.path.append(str(Path(__file__).parents[1]))
from commands import GPULAB

from gpulab.catalog.recordings import RECORDINGS

LARGEST_BYTES = 200_000


def record(name, *more):
    """What became of it, in a line."""
    with TemporaryDirectory() as folder:
        run_file = Path(folder) / f"{name}.jsonl"
        command = [*GPULAB, "--run", name, *more, "--output", str(run_file)]
        code = subprocess.run(command, check=False).returncode
        if code != 0:
            return f"not kept: exit code {code}"
        report = gpulab.load(run_file)
        text = run_file.read_bytes().replace(f"{folder}/".encode(), b"")
        packed = lzma.compress(shortened(text), preset=9 | lzma.PRESET_EXTREME)
    if len(packed) > LARGEST_BYTES:
        return f"not kept: {len(packed):,} bytes"
    path = RECORDINGS / kind_of(report.device.name) / f"{name}.jsonl.xz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(packed)
    return f"{len(packed):,} bytes: {path}"


def shortened(text):
    """Without the folders of this machine: what is left begins in the checkout or site-packages."""
    checkout = RECORDINGS.parents[1]
    libraries = Path(lzma.__file__).parent
    for folder in (checkout, Path(sys.prefix), libraries, Path.home()):
        text = text.replace(f"{folder}/".encode(), b"")
    return text


def kind_of(device):
    """NVIDIA H100 80GB HBM3: h100."""
    words = device.lower().split()
    return next((word for word in words if word[-1].isdigit()), words[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--ncu", action="store_true")
    given = parser.parse_args()
    more = ["--device", given.device, *(["--ncu"] if given.ncu else [])]
    for name in given.names:
        print(f"{name}: {record(name, *more)}", flush=True)


if __name__ == "__main__":
    main()
