"""Plain functions of a file as the steps of one side."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import repeat
from pathlib import Path
from typing import Any

from gpulab.engine.plain_functions import (
    Arguments,
    Function,
    function_of,
    made,
    seed_everything,
    work_of,
    yields,
)
from gpulab.engine.step_clock import call_each, know_torch, paced, timed, wait_for


class FunctionSteps:
    """Functions of a file as steps, by their names."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        sys.argv = [task["file"]]
        self._seed = task["seed"]
        module = _run(task["file"], task["module"])
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(task["threads"])
        make = None
        if task["arguments"]:
            file, _, name = task["arguments"].rpartition(":")
            maker = _run(file, "_arguments") if file else module
            make = function_of(maker, name, file or task["file"])

        def device() -> Any:  # torch is imported only for a function that asks for it
            return importlib.import_module("torch").device(task["device"])

        self._steps: dict[str, Callable[[], Any]] = {}
        self._first: dict[str, Callable[[], Any]] = {}
        """Steps that return what a generator yields, which no timed one keeps."""
        self._built: list[Iterator[Any]] = []
        """What ends with the process."""
        self.number = (
            "float32"
            if any(name in sys.modules for name in ("torch", "numpy", "jax", "cupy"))
            else "float64"
        )
        """What Python's floats were computed in, in an output."""
        for name in task["functions"]:
            seed_everything(self._seed)
            function = function_of(module, name, task["file"])
            arguments = made(function, make, device) if make else ((), {})
            self._steps[name] = self._step(function, arguments, keeps=False)
            if yields(function):
                self._first[name] = self._step(function, arguments, keeps=True)
            if _all_double([*arguments[0], *arguments[1].values()]):
                self.number = "float64"
        self.names = list(self._steps)
        self.items = dict.fromkeys(self.names, 1.0)
        self.device = {"kind": "cpu", "name": _cpu_name(), "threads": task["threads"]}
        self.versions: dict[str, str] = {}
        self.wait: Callable[[], object] = lambda: None

    def _step(self, function: Function, arguments: Arguments, *, keeps: bool) -> Callable[[], Any]:
        work = work_of(function, arguments, keeps=keeps)
        if isinstance(work, Iterator):
            self._built.append(work)
            work = next(work)
        return work.step

    def first(self, name: str) -> object:
        """The first step of this process, seeded; what it returns."""
        seed_everything(self._seed)
        returned = self._first.get(name, self._steps[name])()
        know_torch()  # the step may have imported it
        torch = sys.modules.get("torch")
        wait_for(returned)
        if torch and torch.cuda.is_initialized():
            self.wait = torch.cuda.synchronize
            self.device = {"kind": "cuda", "name": torch.cuda.get_device_name()}
        self.wait()
        return returned

    def block_s(self, name: str, steps: int, lead_in: int) -> float:
        step = self._steps[name]
        if lead_in:
            step = paced(step, call_each(repeat(step, lead_in)))
        block, _ = timed(repeat(step, steps), steps, self.wait)
        return block.time_s

    def close(self) -> None:
        """Run what follows the last step of each function."""
        for built in self._built:
            next(built, None)


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _run(file: str, name: str) -> Any:
    loader = SourceFileLoader(name, file)
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def _all_double(arguments: list[Any]) -> bool:
    """Return whether every array of floats in arguments is of float64, and there are some."""
    dtypes = (str(getattr(part, "dtype", "")).rpartition(".")[2] for part in arguments)
    floats = {name for name in dtypes if "float" in name or "complex" in name}
    return bool(floats) and floats <= {"float64", "complex128"}
