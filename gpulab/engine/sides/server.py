"""A server of one side of a comparison, or of both: it forks processes that each run one revision,
and time its steps when they are told to.

Two processes of one fork server share the addresses of its libraries and its hash seed, which make
up to 5 % between two processes of the same code: so both sides of a pair are forks of one server.
It needs nothing but the standard library: the Python of its side may have no gpulab, and what is
compared may be two revisions of gpulab.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import platform
import random
import signal
import sys
import sysconfig
import traceback
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from time import perf_counter
from typing import Any

from gpulab.engine.processes.layout import in_own_layout
from gpulab.engine.sides.functions import FunctionSteps
from gpulab.engine.sides.outputs import SideError, disagreement, leaves_of, other_dtypes
from gpulab.engine.sides.watched import Watched, python_threads
from gpulab.proc.fork import fork
from gpulab.scenario import ScenarioError


def _serve(task: Mapping[str, Any], connection: Connection) -> None:
    """In a forked process: load, and do what is asked until the connection ends."""

    def send(answer: Mapping[str, Any]) -> None:
        connection.send_bytes(json.dumps(answer).encode())

    try:
        member = SideProcess(task)
        send(member.description())
        while True:
            try:
                line = connection.recv_bytes()
            except (EOFError, OSError):
                return
            request = json.loads(line)
            send(getattr(member, request.pop("do"))(**request))
    except BaseException as error:  # whatever the file raises
        is_said = isinstance(error, (SideError, ScenarioError))
        if not is_said:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        message = str(error) if is_said else _said(error)
        with suppress(OSError):
            send({"error": message})


def _said(error: BaseException) -> str:
    """Return its class and the first line of its message."""
    first, *_ = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


class SideProcess:
    """A process that takes the steps of one revision."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        if task["core"] is not None:
            os.sched_setaffinity(0, {task["core"]})
        self._watched = Watched() if task["probes"] else None
        self._steps = _steps_of(task)
        self._outputs: dict[str, Any] = {}
        self._step_s: dict[str, float] = {}
        if self._watched:
            self._watched.steps_begin()
        for name in self._steps.names:
            self._outputs[name] = self._steps.first(name)
            self._step_s[name] = self._warm(name)
        if not task["probes"]:
            self._outputs.clear()
        self._probed = self._seen() if self._watched else {}
        gc.collect()
        gc.freeze()

    def _warm(self, name: str) -> float:
        """Seconds of a step, once it is warm."""
        times: list[float] = []
        started = perf_counter()
        passed_s = 0.0
        # twenty steps, where they take no longer than 0.3 s
        while passed_s < 0.015 or (len(times) < 20 and passed_s < 0.3):
            times.append(self._steps.block_s(name, 1, 0))
            passed_s = perf_counter() - started
        return min(times)

    def _seen(self) -> dict[str, Any]:
        assert self._watched is not None
        self._watched.end()
        libraries = ("stdlib", "platstdlib", "purelib", "platlib")
        modules = {}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and name != "__main__":
                modules[name] = file
        return {
            "modules": modules,
            "files": list(self._watched.files),
            "processes": self._watched.processes,
            "parallel": self._watched.parallel,
            "threads": python_threads(),
            "libraries": sorted({sysconfig.get_path(name) for name in libraries}),
            "versions": {**_versions(modules), **self._steps.versions},
            "device": self._steps.device,
        }

    def description(self) -> dict[str, Any]:
        return {"step_s": self._step_s, **self._probed}

    def block(self, name: str, steps: int) -> dict[str, Any]:
        """Seconds of an item."""
        lead_in = int(self._step_s[name] < 0.01)  # a longer one brings its caches back itself
        gc.disable()
        seconds = self._steps.block_s(name, steps, lead_in)
        gc.enable()
        return {"s": seconds / self._steps.items[name]}

    def keep(self, name: str, path: str) -> dict[str, Any]:
        """Write the output of the first step."""
        try:
            leaves = leaves_of(self._outputs[name])
        except Exception as error:
            return {"why_not": str(error)}
        with Path(path).open("wb") as file:
            pickle.dump(leaves, file)
        return {}

    def agree(self, name: str, path: str) -> dict[str, Any]:
        """Compare the output with one that was written by the other side."""
        with Path(path).open("rb") as file:
            theirs = pickle.load(file)
        try:
            ours = leaves_of(self._outputs[name])
            differs = disagreement(ours, theirs, self._steps.number)
            dtypes = "" if differs else other_dtypes(ours, theirs)
            return {"differs": differs, "dtypes": dtypes}
        except Exception as error:
            return {"why_not": str(error)}

    def tear_down(self) -> dict[str, Any]:
        self._steps.close()
        return {}


def _steps_of(task: Mapping[str, Any]) -> Any:
    sys.path[:0] = task["folders"]
    os.chdir(task["cwd"])
    sys.dont_write_bytecode = not task["writes_bytecode"]
    if "job" not in task:
        return FunctionSteps(task)
    try:
        from gpulab.engine.sides.scenario import ScenarioSteps
    except ModuleNotFoundError as error:
        raise SideError(
            f"{error}: a scenario requires gpulab in its Python, a function not"
        ) from None

    return ScenarioSteps(task)


def _versions(modules: Mapping[str, str]) -> dict[str, str]:
    """Return those of Python and of the packages that are imported."""
    versions = {"python": platform.python_version()}
    packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    for name in sorted(packages):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    return versions


def main(control_fd: int) -> None:
    """Carry out orders until their connection ends: modules to import, or a process to fork, whose
    own connection comes behind the order.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    control = Connection(control_fd)
    while True:
        try:
            order = json.loads(control.recv_bytes())
        except EOFError:
            return
        for name in order.get("preload", ()):
            with suppress(BaseException):  # then each process sees for itself
                importlib.import_module(name)
        if "fork" not in order:
            control.send_bytes(b".")
            continue
        descriptor = recv_handle(control)
        gc.freeze()
        if fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                task = order["fork"]
                connection = Connection(descriptor)
                draw = random.Random(task["layout"])
                in_own_layout(draw, partial(_serve, task, connection))
            finally:
                os._exit(0)
        os.close(descriptor)
