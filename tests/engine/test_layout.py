"""Where the stack and the heap of forks lie that measure."""

import ctypes
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.engine.processes.layout import in_own_layout

FORKS = 12


def places(layout):
    """How many places in a page the stack of forks has, a small object of theirs and a large
    one.
    """
    found = zip(*(places_of_fork(layout, number) for number in range(FORKS)), strict=True)
    return [len({place % 4096 for place in kind}) for kind in found]


def places_of_fork(layout, number):
    told, tells = os.pipe()
    waits, goes_on = os.pipe()
    pid = os.fork()
    if pid == 0:

        def serve():
            small, large = object(), bytearray(100_000)
            os.write(
                tells, f"{id(small)} {ctypes.addressof(ctypes.c_char.from_buffer(large))}".encode()
            )
            os.read(waits, 1)

        try:
            layout(random.Random(number), serve)
        finally:
            os._exit(0)
    os.close(tells)
    os.close(waits)
    heap = [int(place) for place in os.read(told, 100).split()]
    stack = stack_pointer(pid)
    os.write(goes_on, b".")
    os.waitpid(pid, 0)
    os.close(told)
    os.close(goes_on)
    return stack, *heap


def stack_pointer(pid):
    """Of a process, once it waits in a system call."""
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        text = Path(f"/proc/{pid}/syscall").read_text()
        if fields := re.fullmatch(r"\d+ (?:0x[0-9a-f]+ ){6}(0x[0-9a-f]+) 0x[0-9a-f]+\n", text):
            return int(fields[1], 16)
    raise ChildProcessError


@pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="this kernel does not tell")
def test_forks_have_stack_and_heap_elsewhere():
    # In a process of its own: what other tests left on this one's heap decides where there is room.
    # There too the parent's heap changes between two forks: three places were seen as forked.
    done = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True)
    as_forked, in_own = json.loads(done.stdout)
    assert max(as_forked) < FORKS // 2 <= min(in_own)


def test_what_is_raised_comes_out():
    def fail():
        raise KeyboardInterrupt("inside")

    with pytest.raises(KeyboardInterrupt, match="inside"):
        in_own_layout(random.Random(0), fail)


def test_where_no_callbacks_can_be_made_the_stack_stays(monkeypatch):
    def refused(*_):
        raise MemoryError

    served = []
    monkeypatch.setattr(ctypes, "CFUNCTYPE", lambda *_: refused)
    in_own_layout(random.Random(0), lambda: served.append(True))
    assert served == [True]


ADDRESSES = """
import ctypes, mmap, os, random, sys
from gpulab.engine.processes.layout import move_libraries
for number in range(int(sys.argv[2])):
    if os.fork() == 0:
        if sys.argv[1] == "moved":
            move_libraries(random.Random(number))
        mapped = mmap.mmap(-1, 1 << 30)
        os.write(1, f"{ctypes.addressof(ctypes.c_char.from_buffer(mapped))}\\n".encode())
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize(("how", "places"), [("as it is", 1), ("moved", FORKS)])
def test_what_is_mapped_lies_elsewhere_in_every_fork(how, places):
    command = [sys.executable, "-c", ADDRESSES, how, str(FORKS)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert (len(told), len(set(told))) == (FORKS, places)


if __name__ == "__main__":
    print(json.dumps([places(lambda draw, serve: serve()), places(in_own_layout)]))
