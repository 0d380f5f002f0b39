"""Record lessons on this machine's devices, as `gpulab/recordings` ships them.

    python benchmarks/device/record.py NAME [NAME ...] [--devices cuda:0,cuda:1] [--limit S]
        [--stop-after S] --to FOLDER [--ncu]

A default run of each, with --ncu with the counters of its kernels: one at a time on each device,
after those of several ranks, which have the devices for themselves. Its file is packed into
FOLDER/KIND (h100, h200, ...), with the paths of this machine shortened, to be copied to
gpulab/recordings. One with a fault (`recording_faults.py`) goes to FOLDER/refused, what each run
printed to FOLDER/logs. Then `python tests/recorded.py`, after a look at what differs.
"""

import argparse
import lzma
import signal
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import gpulab

sys.path.append(str(Path(__file__).parents[1]))
from commands import GPULAB
from recording_faults import faults_of

from gpulab.catalog.catalog import folders, read_file
from gpulab.catalog.recordings import RECORDINGS

GRACE_S = 30
LAST_LINES = 3


@dataclass(frozen=True)
class Recorder:
    """Where recordings go, and how long they may take; `end`: when the last one may begin."""

    folder: Path
    limit_s: float | None
    end: float
    flags: tuple[str, ...] = ()

    def record(self, name, device):
        """Record a lesson, and print what became of it."""
        began = time.monotonic()
        try:
            outcome = "not begun" if began > self.end else self._outcome(name, device)
        except Exception as error:  # the next lesson is recorded all the same
            outcome = repr(error)
        print(f"{name}, {device}, {time.monotonic() - began:.0f} s: {outcome}", flush=True)

    def record_all(self, names, device):
        """Record lessons of a queue, until it is empty."""
        with suppress(IndexError):
            while True:
                self.record(names.popleft(), device)

    def _outcome(self, name, device):
        with TemporaryDirectory() as folder:
            run_file = Path(folder) / f"{name}.jsonl"
            fault = self._run(name, device, run_file)
            if not run_file.exists():
                return fault or "no run file"
            text = run_file.read_bytes().replace(f"{folder}/".encode(), b"")
        path = self.folder / "refused" / f"{name}.jsonl.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(shortened(text), preset=9 | lzma.PRESET_EXTREME))
        if faults := [fault] if fault else list(faults_of(path)):
            return "\n    ".join([f"refused: {path}", *faults])
        return f"{path.stat().st_size:,} bytes: {self._keep(path)}"

    def _run(self, name, device, run_file):
        """Why the run is none to keep; None where it ended well."""
        command = [*GPULAB, "--run", name, "--device", device, "--output", str(run_file)]
        log = self.folder / "logs" / f"{name}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            process = subprocess.Popen([*command, *self.flags], stdout=out, stderr=out)
            try:
                code = process.wait(self.limit_s)
            except subprocess.TimeoutExpired:
                end(process)
                return f"beyond {self.limit_s:g} s"
        lines = filter(str.strip, log.read_text(errors="replace").splitlines())
        return "\n    ".join([f"exit code {code}", *[*lines][-LAST_LINES:]]) if code else None

    def _keep(self, path):
        kept = self.folder / kind_of(gpulab.load(path).device.name) / path.name
        kept.parent.mkdir(exist_ok=True)
        return path.replace(kept)


def end(process):
    """As Ctrl+C does, so that what it started ends too."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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


def has_ranks(name):
    """Return whether a lesson takes several GPUs: those after the first of the devices."""
    scenario = read_file(folders()[-1] / f"{name}.py").scenario
    return scenario is not None and scenario.ranks_of(scenario.params) > 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--devices", default="cuda:0", type=lambda text: text.split(","))
    parser.add_argument("--limit", type=float, help="seconds of one run")
    parser.add_argument("--stop-after", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--to", type=Path, required=True, help="a folder, with its refused runs")
    parser.add_argument("--ncu", action="store_true")
    given = parser.parse_args()
    latest = time.monotonic() + given.stop_after
    recorder = Recorder(given.to, given.limit, latest, ("--ncu",) if given.ncu else ())
    recorder.record_all(deque(filter(has_ranks, given.names)), given.devices[0])
    rest = deque(name for name in given.names if not has_ranks(name))
    with ThreadPoolExecutor(len(given.devices)) as pool:
        try:
            list(pool.map(lambda device: recorder.record_all(rest, device), given.devices))
        finally:
            rest.clear()


if __name__ == "__main__":
    main()
