"""Waits in a Python of a followed program until torch or JAX is imported, or `gpulab.step()` is
called, and loads the follower then.

Standard library only, for Python 3.9 and later: this is the program's interpreter, not gpulab's.
Nothing here may raise into the program. Its folder is first on PYTHONPATH; it leaves sys.path, and
a `sitecustomize` of the program's own runs as it would have.
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from time import perf_counter
from types import ModuleType
from typing import Any

FOLDER = "GPULAB_FOLLOW"
"""The variable with the folder that the files of the processes are written to."""
_HERE = os.path.dirname(os.path.abspath(__file__))
_AGENT = "_gpulab_agent"
_WATCHES = {
    "jax._src.profiler": "watch_jax",
    "torch.autograd.profiler": "watch_profilers",
    "torch.autograd.profiler_legacy": "watch_profilers",
    "torch.distributed.distributed_c10d": "watch_groups",
    "torch._dynamo.callback": "watch_compiler",
    "torch.jit._trace": "watch_traces",
    "torch.nn.modules.module": "watch_modules",
    "torch.optim.optimizer": "watch_optimizers",
    "torch.profiler.profiler": "watch_profilers",
    "torch.utils.data._utils.fetch": "watch_loading",
}
"""Modules by which steps are seen: methods of the follower, or of the trials, that take them."""
_PARENTS = {"subprocess": "_handle_exitstatus", "multiprocessing.popen_fork": "poll"}
"""Modules whose Popen learns how a child ended, and by what."""
_TRIED = ("GPULAB_FOLLOW_WHAT_IF", "GPULAB_FOLLOW_TRY")
_MOST_PROCESSES = 1000
"""Beyond which no more are followed: a shell script may start a Python for every file."""


class Agent:
    """Of one process: loads the follower when there is something to follow."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.samples: Any = None
        """Those of this process, which want to know when a step ends."""
        self._follower: Any = None
        self._failed = False

    @property
    def follower(self) -> Any:
        """None where it could not be loaded."""
        if self._follower is None and not self._failed:
            try:
                module = Agent.load("_gpulab_follower", "gpulab_follower.py")
                self._follower = module.Follower(self._folder, self.samples)
                ranges = Agent.load("_gpulab_ranges", "../../../proc/nvtx_ranges.py")
                if ranges.profiler_listens():
                    self._follower.step_range = ranges.StepRange()
                if any(name in os.environ for name in _TRIED):
                    Agent.load("_gpulab_parts", "../../trials/delayed.py")
                    trials = Agent.load("_gpulab_trials", "../../trials/in_program.py")
                    self._follower.trials = trials.Trials(self._folder)
            except Exception:
                self._failed = True
        return self._follower

    def imported(self, name: str, module: ModuleType) -> None:
        """A module of torch or JAX that is awaited has been imported."""
        if name in _PARENTS:
            return _watch_children(module.Popen, _PARENTS[name], self._folder)
        follower = self.follower
        if follower is None:
            return
        for watcher in (follower, follower.trials):
            watch = getattr(watcher, _WATCHES[name], None)
            if watch is not None:
                watch(module)

    @staticmethod
    def load(name: str, file: str) -> Any:
        """Import a file by its path from here under a name of our own, by which Dynamo finds what
        stands there.
        """
        spec = spec_from_file_location(name, os.path.join(_HERE, file))
        module = module_from_spec(spec)  # type: ignore[arg-type]
        sys.modules[name] = module
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        return module

    def step(self) -> None:
        """What `gpulab.step()` calls."""
        follower = self._follower or self.follower
        if follower is not None:
            follower.called()


class _Loader:
    """A loader that tells the agent of its module once that has been imported."""

    def __init__(self, loader: Any, agent: Agent) -> None:
        self._loader, self._agent = loader, agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        try:
            module.__spec__.loader = module.__loader__ = self._loader  # type: ignore[union-attr]
            self._agent.imported(module.__name__, module)
        except Exception:
            return


def _watch_imports(agent: Agent) -> None:
    """Give the awaited modules a loader of our own. A program that lists its finders sees none of
    ours.
    """
    find_spec = PathFinder.find_spec

    def found(name: str, path: Any = None, target: Any = None) -> Any:
        spec: Any = find_spec(name, path, target)
        is_awaited = name in _WATCHES or name in _PARENTS
        if is_awaited and spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, agent)
        if name == "gpulab" and spec is None and _found(name, but=PathFinder) is None:
            loader: Any = _StandIn()
            return ModuleSpec(name, loader)
        return spec

    PathFinder.find_spec = found  # type: ignore[assignment,method-assign]


def _watch_children(kind: Any, name: str, folder: str) -> None:
    """Say how children that are followed ended: only their parent learns it."""
    method = getattr(kind, name)

    @wraps(method)
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        known = self.returncode
        try:
            result = method(self, *args, **kwargs)
        except BaseException as error:
            traceback = error.__traceback__
            error.__traceback__ = traceback.tb_next if traceback else None
            raise
        if known is None and self.returncode is not None:
            _say_end(folder, self.pid, self.returncode)
        return result

    setattr(kind, name, told)


def _say_end(folder: str, pid: int, code: int) -> None:
    """Only of one that uses torch: others may be many."""
    try:
        names = os.listdir(folder)
        known = any(name.startswith("%d-" % pid) and name.endswith(".jsonl") for name in names)
        if known and len(names) < _MOST_PROCESSES:
            line = '{"type":"exited","pid":%d,"code":%d,"signal":%d,"at":%f}\n'
            _say(folder, line % (pid, max(0, code), max(0, -code), perf_counter()))
    except Exception:
        return


def _say(folder: str, more: str = "") -> None:
    """Say that there is a Python that can be followed, and more."""
    line = '{"type":"process","pid":%d,"parent":%d,"python":"%d.%d.%d"}\n'
    line %= (os.getpid(), os.getppid(), *sys.version_info[:3])
    name = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}.start")
    with open(name, "x") as file:
        file.write(line + more)


class _StandIn:
    """Loads a `gpulab` with `step` alone, where the interpreter has none."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        agent = sys.modules[_AGENT]
        module.step = agent.step  # type: ignore[attr-defined]


def _found(name: str, but: object = None) -> Any:
    """The spec of a module by the other finders; None where there is no such module."""
    for finder in sys.meta_path:
        if finder is but or not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(name, None)
        if spec is not None:
            return spec
    return None


def _begin() -> None:
    """Watch this process, and say that there is a Python that can be followed."""
    folder = os.environ.get(FOLDER, "")
    if not folder or len(os.listdir(folder)) >= _MOST_PROCESSES:
        return
    _say(folder)
    agent = Agent(folder)
    sys.modules[_AGENT] = agent  # type: ignore[assignment]
    _watch_imports(agent)
    stacks = Agent.load("_gpulab_stacks", "../../../proc/stacks.py").Stacks(folder)
    agent.samples = Agent.load("_gpulab_samples", "gpulab_samples.py").begin(folder, stacks)


def _run_own() -> None:
    """The `sitecustomize` that the program would have had; its errors are the program's. Where it
    has none, Python is told that there is none: it looks on, and the program finds no file of ours.
    """
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    spec = _found("sitecustomize")
    if spec is None or spec.loader is None:
        raise ImportError(name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _begin()
except Exception:  # the folder is gone, or full: the program goes on as if nobody followed it
    pass
_run_own()
