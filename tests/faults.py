"""Scenarios that go wrong in every way the lab must survive, for each of its faces."""

HEAD = """
import ctypes, os, signal, subprocess, sys, time
from collections import Counter
import torch
from gpulab import Scenario, Work
scenario = Scenario("faults")
DATA = torch.rand(4096)
later_process = os.path.exists("loaded")
open("loaded", "w").close()
counts = Counter()

def built(name):
    counts[name] += 1
    return counts[name]

@scenario.variant
def good(lab):
    out = torch.empty_like(DATA)
    return Work(lambda: torch.mul(DATA, 2, out=out), inputs=DATA)
"""
VARIANT = """
@scenario.variant
def {name}(lab):
    builds = built({name!r})
    out = torch.empty_like(DATA)
    steps = 0
    def step():
        nonlocal steps
        steps += 1
        {step}
        return torch.mul(DATA, 2, out=out)
    {build}
    return Work(step, inputs=DATA)
"""
LATE = "if later_process and steps > 4000: "
"""In the measurement, once a process has had its rounds."""


def scenario(lab, *, step="pass", build="pass", tail=""):
    """A file with the variants `good` and `bad`, which has these statements in its step and in its
    build.
    """
    return lab.write("fault.py", HEAD + VARIANT.format(name="bad", step=step, build=build) + tail)


def scenario_of(lab, cases, tail=""):
    """A file with a variant for each case, by its name."""
    variants = []
    for name, (where, statement, *_) in cases.items():
        statements = {"step": "pass", "build": "pass", where: statement}
        variants.append(VARIANT.format(name=name.replace(" ", "_"), **statements))
    return lab.write("faults.py", HEAD + "".join(variants) + tail)


def line_of(path, text):
    """The number of the first line with that text."""
    return next(
        number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line
    )


CASES = {
    # name: (where, statement, kind, stage, message): of that variant alone, the process and the
    # others go on
    "raises while building": ("build", "raise ValueError('a')", "error", "build", "ValueError: a"),
    "raises in step 1": ("step", "raise ValueError('b')", "error", "check", "ValueError: b"),
    "raises in step 500": (
        "step",
        "if steps > 500: raise ValueError('c')",
        "error",
        "calibrate",
        "ValueError: c",
    ),
    "raises late": (
        "step",
        "if builds > 1: raise ValueError('d')",
        "error",
        "measure",
        "ValueError: d",
    ),
    "sys exit while building": ("build", "sys.exit(3)", "exit", "build", "sys.exit(3)"),
    "sys exit in a step": ("step", "sys.exit('no')", "exit", "check", "sys.exit('no')"),
    "out of memory": ("build", "torch.empty(1 << 58)", "out of memory", "build", "memory"),
    "memory error": ("step", "raise MemoryError", "out of memory", "check", "MemoryError"),
    "wrong return": ("build", "return out", "error", "build", "return Work(step, ...)"),
    "message that raises": (
        "step",
        "raise Unspeakable",
        "error",
        "check",
        "(str() of this Unspeakable raises SystemExit)",
    ),
    "message of a million lines": (
        "step",
        r"raise ValueError('line\n' * 10**6)",
        "error",
        "check",
        "more characters)",
    ),
    "reports no name": (
        "build",
        "lab.report(5, 1.0)",
        "error",
        "build",
        "a name is a text of 1 to 100 visible characters",
    ),
    "reports no number": (
        "step",
        "lab.report('speed', Unspeakable())",
        "error",
        "check",
        "a figure is a number",
    ),
    "reports too often": (
        "step",
        "[lab.report(f'{number}', 1) for number in range(10**5)]",
        "error",
        "check",
        "at most 100 different names",
    ),
    "quantized output": (
        "step",
        "return torch.quantize_per_tensor(DATA, 0.1, 0, torch.quint8)",
        "error",
        "check",
        "a quantized tensor cannot be checked",
    ),
    "escape sequences": (
        "build",
        r"os.write(1, b'\x1b[2Jred\x1b]0;title\x07\xff\xfe\x00\x9b31m\n'); raise ValueError('\x1b[31mred\x07 [bold]x')",
        "error",
        "build",
        "[bold]x",
    ),
}

GRANDCHILD = (
    "subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(signal.SIGTERM, "
    "signal.SIG_IGN); time.sleep(600)'], start_new_session={})"
)
ODD = {
    # name: (where, statement): what no scenario should do, and what spoils no measurement
    "flood": ("build", "if builds == 1: print(*range(200_000), sep=chr(10))"),
    "grandchildren": (
        "build",
        f"if builds == 1: {GRANDCHILD.format(False)}; {GRANDCHILD.format(True)}",
    ),
    "descriptors": (
        "build",
        "os.closerange(3, 256)",
    ),
    "forks": ("build", "if builds == 1: os.fork()"),
    "phases of no name": ("step", "lab.phase(Unspeakable()).__enter__()"),
    "a thread that never ends": (
        "build",
        "if builds == 1: threading.Thread(target=time.sleep, args=(600,)).start()",
    ),
}
ODD_TAIL = """
import threading

class Unspeakable(Exception):
    def __str__(self):
        raise SystemExit(3)

    __repr__ = __str__

os.chdir("/")
"""
ENDS = {
    # name: (statement, kind, code of the cause, its values): the process ends, and the run with it
    "os._exit": ("os._exit(7)", "exit", "worker_exited", {"code": 7}),
    "segfault": ("ctypes.string_at(0)", "crash", "crashed", {"signal": "SIGSEGV"}),
    "abort": ("os.abort()", "crash", "crashed", {"signal": "SIGABRT"}),
    "killed": ("os.kill(os.getpid(), 9)", "killed", "killed", {}),
    "cpu time": (
        "os.kill(os.getpid(), signal.SIGXCPU); time.sleep(600)",
        "killed",
        "cpu_time_spent",
        {},
    ),
    "pipe closed": (
        "os.closerange(3, 4096); channel.emit(WorkerDone(sent=0))",
        "crash",
        "event_pipe_closed",
        {},
    ),
    "raises beside a thread": (
        "import threading; threading.Thread(target=time.sleep, args=(600,)).start(); raise "
        "ValueError",
        "exit",
        "worker_exited",
        {"code": 1},
    ),
    "no end": ("exec('while True: pass')", "timeout", "timeout", {"timeout_s": 1.0}),
    "ignores SIGTERM": (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); exec('while True: pass')",
        "timeout",
        "timeout",
        {"timeout_s": 1.0},
    ),
    # PyDLL holds the interpreter's lock meanwhile, as a long operation of a library may.
    "holds the interpreter": (
        "ctypes.PyDLL(None).sleep(600)",
        "timeout",
        "timeout",
        {"timeout_s": 1.0},
    ),
}
