"""Scenarios that go wrong in every way the lab must survive, for each of its faces."""

HEAD = """
import ctypes, os, signal, subprocess, sys, time
import torch
from gpulab import Scenario, Work
scenario = Scenario("faults")
DATA = torch.rand(4096)
builds = 0

@scenario.variant
def good(lab):
    out = torch.empty_like(DATA)
    return Work(lambda: torch.mul(DATA, 2, out=out), inputs=DATA)

@scenario.variant
def bad(lab):
    global builds
    builds += 1
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
LATE = "if builds > 12 and steps > 1: "  # in the measurement, after some epochs


def scenario(lab, *, step="pass", build="pass", tail=""):
    return lab.write("fault.py", HEAD.format(step=step, build=build) + tail)


def line_of(path, text):
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


CASES = {
    # name: (where, statement, kind, stage, part of the message)
    "raises while building": ("build", "raise ValueError('boom')", "error", "build", "ValueError: boom"),
    "raises in step 1": ("step", "raise ValueError('boom')", "error", "check", "ValueError: boom"),
    "raises in step 500": ("step", "if steps > 500: raise ValueError('boom')", "error", "warm-up", "ValueError: boom"),
    "raises late": ("step", LATE + "raise ValueError('boom')", "error", "measure", "ValueError: boom"),
    "sys.exit while building": ("build", "sys.exit(3)", "exit", "build", "sys.exit(3)"),
    "sys.exit in a step": ("step", "sys.exit('no')", "exit", "check", "sys.exit('no')"),
    "os._exit": ("step", "os._exit(7)", "exit", "check", "exit code 7"),
    "segfault": ("step", "ctypes.string_at(0)", "crash", "check", "SIGSEGV"),
    "abort": ("step", "os.abort()", "crash", "check", "SIGABRT"),
    "killed": ("step", "os.kill(os.getpid(), 9)", "killed", "check", "memory"),
    "out of memory": (
        "build",
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30)); torch.ones(1 << 30)",
        "out of memory",
        "build",
        "memory",
    ),
    "MemoryError": ("step", "raise MemoryError", "out of memory", "check", "MemoryError"),
    "wrong return": ("build", "return out", "error", "build", "return Work(step, ...)"),
}

GRANDCHILD = (
    "subprocess.Popen([sys.executable, '-c', "
    "'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)'], start_new_session={})"
)

ODD = {
    # name: (where, statement, what the result or the log says, seconds until it is stopped)
    "no end": ("step", "exec('while True: pass')", "raise --timeout", 6),
    "flood": ("build", "if builds == 1: print(*range(200_000), sep=chr(10))", "198,000 lines left out", None),
    "pipe closed": ("build", "os.closerange(3, 4096)", "closed the lab's event pipe", None),
    "directory changed": ("build", "os.chdir('/')", "os.chdir", None),
    "grandchild": ("build", f"if builds == 1: {GRANDCHILD.format(True)}", "left 1 processes behind", None),
    "binary output": (
        "build",
        r"os.write(1, b'\x1b[2Jx\xff\x00\x9b31m\n'); raise ValueError('\x1b[31m[b]no')",
        "[b]no",
        None,
    ),
}
