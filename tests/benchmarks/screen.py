"""What the screen costs: its first frame, its bytes, its share of a core, and what it does to a measurement.

python tests/benchmarks/screen.py [startup] [bytes] [observer]     # all three without an argument
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))
from pseudo_terminal import Pty

import gpulab
from gpulab.analysis.statistics import as_speedup, log_ratios, median_interval

SIZES = ((80, 24), (120, 40))
STARTS, PAIRS = 15, 20
BARE = """
from textual.app import App
from textual.widgets import Footer, OptionList
class Bare(App):
    BINDINGS = [("q", "quit", "quit")]
    def compose(self):
        yield OptionList("one", "two", "three")
        yield Footer()
Bare().run()
"""
COMPUTE = '''
"""Compute-bound: a product that fits the cache."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("benchmark")
@scenario.variant
def product(lab):
    """One product."""
    a, b, out = torch.randn(128, 128), torch.randn(128, 128), torch.empty(128, 128)
    return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b), output=out)
@scenario.variant
def again(lab):
    """The same."""
    return product(lab)
'''

RESTLESS = '''
"""Restless: builds that differ, so that no interval narrows, and as many rounds as a run can have."""
import os
import torch
from gpulab import Scenario, Work
scenario = Scenario("benchmark")
@scenario.variant
def random(lab):
    """So many additions as chance will have it."""
    data, count = torch.ones(1 << 17), os.urandom(1)[0] % 8 + 1
    def step():
        for _ in range(count):
            out = data + 1
        return out
    return Work(step, inputs=data)
@scenario.variant
def again(lab):
    """The same."""
    return random(lab)
'''


class Screen(Pty):
    """The terminal of a program that `q` ends, with its run files in `folder`."""

    def __init__(self, command, folder=None, **options):
        state = {"XDG_STATE_HOME": folder} if folder else {}
        super().__init__(command, env={**os.environ, **state}, **options)

    def close(self):
        self.press(b"q")
        self.end()


def first_frame_s(command, text):
    started = time.perf_counter()
    screen = Screen(command)
    screen.read(20, until=text)
    took = time.perf_counter() - started
    screen.close()
    return took


def startup():
    """Exec to first frame, in turn with a bare Textual app."""
    # Compiled modules, as an installed package has them, also where this machine writes none.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp()
    lab, bare = [sys.executable, "-m", "gpulab", "--device", "cpu"], [sys.executable, "-c", BARE]
    first_frame_s(lab, b"precision"), first_frame_s(bare, b"three")
    pairs = [(first_frame_s(lab, b"precision"), first_frame_s(bare, b"three")) for _ in range(STARTS)]
    lab_s, bare_s = (median(side) for side in zip(*pairs, strict=True))
    ratio = median(of_lab / of_bare for of_lab, of_bare in pairs)
    line = f"exec to first frame: {lab_s * 1e3:.0f} ms, a bare Textual app {bare_s * 1e3:.0f} ms: {ratio:.2f}x"
    print(line, flush=True)


def bytes_and_cpu():
    """Over ten seconds of a run, and over five at rest."""
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "restless.py"
            file.write_text(RESTLESS)
            command = [sys.executable, "-m", "gpulab", str(file), "--device", "cpu", "--time", "40"]
            screen = Screen(command, folder, size=size)
            screen.read(20, until=b"restless")
            screen.press(b"r")
            screen.read(40, until=b"control")
            face = psutil.Process(screen.pid)
            before, started = sum(face.cpu_times()[:2]), time.monotonic()
            sent = len(screen.read(10))
            took = time.monotonic() - started
            cpu = (sum(face.cpu_times()[:2]) - before) / took
            screen.press(b"ss")
            screen.read(5, until=b"ready")
            screen.read(1)
            rest = len(screen.read(5))
            screen.close()
        run = f"{sent / took / 1000:.1f} KB/s, {cpu:.1%} of a core"
        print(f"{size[0]}x{size[1]}, during a run: {run}; at rest: {rest} bytes in 5 s", flush=True)


def observer():
    """One compute-bound scenario headless and in the app, in turn: the ratio of its times, with its interval."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "compute.py"
        file.write_text(COMPUTE)
        common = [str(file), "--device", "cpu", "--time", "3"]
        apart, together = [], []
        for number in range(PAIRS):
            for face in ("headless", "screen") if number % 2 else ("screen", "headless"):
                time_s = in_the_app(common, folder) if face == "screen" else headless(common)
                (together if face == "screen" else apart).append(time_s)
            times = f"headless {apart[-1] * 1e6:.2f} us, in the app {together[-1] * 1e6:.2f} us"
            print(f"  pair {number + 1}: {times}", flush=True)
        effect = as_speedup(median_interval(log_ratios(apart, together)))
        print(
            f"observer effect of the screen, {PAIRS} pairs: time in the app / headless "
            f"{effect.median:.4f} [{effect.low:.4f}, {effect.high:.4f}]"
        )


def headless(common):
    command = [sys.executable, "-m", "gpulab", "--run", *common, "--json"]
    done = subprocess.run(command, check=True, capture_output=True)
    return json.loads(done.stdout)["runs"][0]["variants"][0]["time_s"]["median"]


def in_the_app(common, folder):
    screen = Screen([sys.executable, "-m", "gpulab", *common], folder, size=(120, 40))
    screen.read(20, until=b"compute")
    screen.press(b"r")
    screen.read(60, until=b"run file")
    screen.close()
    newest = max(Path(folder).rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    return gpulab.load(newest).variant("product").time_s.median


if __name__ == "__main__":
    PARTS = {"startup": startup, "bytes": bytes_and_cpu, "observer": observer}
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
