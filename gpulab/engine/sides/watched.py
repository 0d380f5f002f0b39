"""What a process of a side reads and starts, until its first steps are over."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any


class Watched:
    """Notes what a process does that is not timed: the files that are opened while a file is loaded
    and steps are taken, and what else is started.
    """

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.processes = False
        """Whether the project's own code started a process, which may read anything."""
        self.parallel = False
        """Whether steps run in several threads or processes."""
        self._stepping = False
        self._threads = 1
        self._on = True
        self._standard = sysconfig.get_path("stdlib")
        self._libraries = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
        sys.addaudithook(self._see)

    def steps_begin(self) -> None:
        self._stepping = True
        self._threads = _tasks()
        self.parallel = python_threads() > 1

    def end(self) -> None:
        self._on = False
        self.parallel |= _tasks() > self._threads

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in ("open", "ctypes.dlopen") and isinstance(args[0], str):
            self.files[args[0]] = None
        elif event in ("os.fork", "os.posix_spawn", "subprocess.Popen", "os.system"):
            self.parallel |= self._stepping
            self.processes |= not self._is_by_library()
        elif event in ("_thread.start_new_thread",):
            self.parallel |= self._stepping

    def _is_by_library(self) -> bool:
        """Return whether a package's own code does it, such as torch, which looks for libraries."""
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._libraries):
                return True
            if not file.startswith((self._standard, "<frozen")):
                return False
            frame = frame.f_back  # type: ignore[assignment]
        return False


def _tasks() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def python_threads() -> int:
    threading = sys.modules.get("threading")
    return threading.active_count() if threading else 1
