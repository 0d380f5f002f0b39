"""A server of one side of a comparison, or of both: it forks processes that each run one revision,
and time its steps when they are told to.

Two processes of one fork server share the addresses of its libraries and its hash seed, which make
up to 5 % between two processes of the same code: so both sides of a pair are forks of one server.
It is started by its path, in the Python of its side, and needs nothing but the standard library:
that Python may have no gpulab, and what is compared may be two revisions of gpulab.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pickle
import platform
import random
import signal
import socket
import sys
import sysconfig
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import repeat
from math import inf
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

_PR_SET_PDEATHSIG = 1
_OBJECTS, _LARGEST = 10_000, 12.0
"""Random objects that a process begins with, and the bytes of the largest as a power of two."""
_WARM_S, _LONG_WARM_S, _WARM_STEPS = 0.015, 0.3, 20
"""How long a process takes the steps of one function before it is timed, at least and at most; and
how many of them, where there is time.
"""
_LEAD_IN_S = 0.01
"""A step from this length on brings its caches back itself."""
_READS = ("open", "ctypes.dlopen")
_NEW_PROCESSES = ("os.fork", "os.posix_spawn", "subprocess.Popen", "os.system")
_NEW_THREADS = ("_thread.start_new_thread",)
_MOST_LEAVES = 10_000
_MOST_OUTPUT_BYTES = 1 << 30
_TOLERANCE = {
    "float64": 1e-10,
    "complex128": 1e-10,
    "float32": 1e-4,
    "complex64": 1e-4,
    "bfloat16": 2e-2,
}
_LOOSE = 5e-3
"""The tolerance of every other kind of floating-point number."""
_OF_ELEMENT, _OF_RMS, _OF_RMS_IF_LOW = 10, 1, 10
"""Tolerances that an element may be off by: of its own value, and of the rms of all in fp32 and
fp64, and where less is precise. As for the variants of a scenario.
"""
_ARRAYS = ("torch", "numpy", "jax", "cupy")
_WITH_TEXT = ("datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid")
"""Modules whose values are equal where their texts are."""


class Steps:
    """Plain functions of a file as steps, by their names."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        sys.argv = [task["file"]]
        self._seed = task["seed"]
        module = _run(task["file"], task["module"])
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(task["threads"])
        maker = None
        if task["arguments"]:
            file, _, name = task["arguments"].rpartition(":")
            maker = _attribute(_run(file, "_arguments") if file else module, name)
        self._calls = {}
        self.number = "float32" if any(name in sys.modules for name in _ARRAYS) else "float64"
        """What Python's floats were computed in, in an output."""
        for name in task["functions"]:
            seed_everything(self._seed)
            call, made = _call(_attribute(module, name), maker, task["device"])
            self._calls[name] = call
            if _all_double(made):
                self.number = "float64"
        self.names = list(self._calls)
        self.items = dict.fromkeys(self.names, 1.0)
        self.device = {"kind": "cpu", "name": _cpu_name(), "threads": task["threads"]}
        self.versions: dict[str, str] = {}
        self.wait: Callable[[], object] = _nothing

    def first(self, name: str) -> object:
        """The first step of this process, seeded; what it returns."""
        seed_everything(self._seed)
        returned = self._calls[name]()
        torch = sys.modules.get("torch")
        _wait_for(returned)
        if torch and torch.cuda.is_initialized():
            self.wait = torch.cuda.synchronize
            self.device = {"kind": "cuda", "name": torch.cuda.get_device_name()}
        self.wait()
        return returned

    def block_s(self, name: str, steps: int, lead_in: int) -> float:
        """Seconds per step of a block."""
        call = self._calls[name]
        for _ in repeat(None, lead_in):
            _wait_for(call())
        self.wait()
        started = perf_counter_ns()
        for _ in repeat(None, steps):
            returned = call()
        _wait_for(returned)
        self.wait()
        return (perf_counter_ns() - started) * 1e-9 / steps

    def close(self) -> None:
        """Nothing was built that needs it."""


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


def _attribute(module: Any, name: str) -> Callable[..., Any]:
    value = module
    for part in name.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise SideError(f"{name} is not a function in {Path(module.__file__).name}")
    return value  # type: ignore[no-any-return]


def _call(
    function: Callable[..., Any], maker: Callable[..., Any] | None, device: str
) -> tuple[Callable[[], Any], Any]:
    """What is called for one step, and its arguments."""
    import inspect
    from functools import partial

    call: Callable[[], Any] = function
    made: Any = ()
    if maker is not None:
        given = {}
        if "device" in inspect.signature(maker).parameters:
            given = {"device": importlib.import_module("torch").device(device)}
        made = maker(**given)
        if isinstance(made, dict):
            call = partial(function, **made)
        else:
            call = partial(function, *(made if isinstance(made, tuple) else (made,)))
    if inspect.isgeneratorfunction(function):
        return lambda: deque(call(), maxlen=0), made
    if inspect.iscoroutinefunction(function):
        import asyncio

        loop = asyncio.new_event_loop()
        return lambda: loop.run_until_complete(call()), made
    return call, made


def _all_double(made: Any) -> bool:
    """Whether every array of floats in arguments is of float64, and there are some."""
    parts = made.values() if isinstance(made, dict) else made
    names = {
        str(part.dtype).rpartition(".")[2]
        for part in (parts if isinstance(made, (dict, list, tuple)) else (made,))
        if hasattr(part, "dtype")
    }
    floats = {name for name in names if "float" in name or "complex" in name}
    return bool(floats) and floats <= {"float64", "complex128"}


def seed_everything(seed: int) -> None:
    """Seed every generator that is there."""
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


def _nothing() -> None:
    pass


def _wait_for(result: object) -> None:
    """Wait for arrays that compute later, as those of JAX."""
    if result is None or type(result) in (int, float, str, bool, bytes):
        return
    if isinstance(result, (list, tuple)):
        for part in result:
            _wait_for(part)
    elif isinstance(result, dict):
        for part in result.values():
            _wait_for(part)
    elif callable(wait := getattr(result, "block_until_ready", None)):
        wait()


class SideError(Exception):
    """Why a side cannot be measured, as one sentence."""


Leaf = tuple[str, Any]
"""A kind, and the value: a number, text, or (dtype, shape, bytes) of an array."""


def leaves_of(output: object) -> list[Leaf]:
    """What a step returned as plain data. SideError where it is of a kind that nobody compares."""
    leaves = []
    size = 0
    for leaf in _leaves(output):
        leaves.append(leaf)
        size += len(leaf[1][2]) if leaf[0] == "array" else 64
        if len(leaves) > _MOST_LEAVES or size > _MOST_OUTPUT_BYTES:
            raise SideError("it is too large")
    return leaves


def _leaves(value: Any) -> Iterator[Leaf]:
    kind = type(value)
    if isinstance(value, (float, complex)):
        yield "number", complex(value) if isinstance(value, complex) else float(value)
    elif value is None or kind in (int, str, bytes, bool):
        yield "value", value
    elif isinstance(value, Enum) or kind.__module__.partition(".")[0] in _WITH_TEXT:
        yield "value", str(value) if isinstance(value, Enum) else repr(value)
    elif isinstance(value, str):
        yield "value", str(value)
    elif isinstance(value, (list, tuple, deque)):
        yield "list", len(value)
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, (set, frozenset)):
        yield "set", len(value)
        for leaves in sorted((list(_leaves(_plain(part))) for part in value), key=repr):
            yield from leaves
    elif is_dataclass(value) and not isinstance(value, (type, dict)):
        yield from _leaves({field.name: getattr(value, field.name) for field in fields(value)})
    elif isinstance(value, dict):
        yield "dict", len(value)
        for key, part in value.items():
            yield from _leaves(_plain(key))
            yield from _leaves(part)
    elif kind.__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        tensor = value.detach().cpu()
        if str(tensor.layout) != "torch.strided":
            tensor = tensor.to_dense()
        name = str(tensor.dtype).partition(".")[2]
        if name.startswith(("bfloat16", "float8")):
            tensor = tensor.float()
        yield "array", (name, tuple(tensor.shape), _bytes(tensor.contiguous().numpy()))
    elif hasattr(value, "__array__"):
        array = importlib.import_module("numpy").asarray(value)
        if array.dtype.hasobject:
            raise SideError("it holds Python objects in an array")
        yield "array", (array.dtype.name, tuple(array.shape), _bytes(array))
    else:
        raise SideError(f"it holds {kind.__module__}.{kind.__qualname__}")


def _plain(value: Any) -> Any:
    """A member of a set or a key: that of NumPy as Python's own, which equals it."""
    is_scalar = type(value).__module__ == "numpy" and hasattr(value, "item")
    return value.item() if is_scalar else value


def _bytes(array: Any) -> bytes:
    return array.tobytes()  # type: ignore[no-any-return]


def disagreement(ours: Sequence[Leaf], theirs: Sequence[Leaf], number: str = "float32") -> str:
    """How two outputs differ, beyond what rounding may do; empty where they agree. `number`: what
    Python's floats were computed in.
    """
    if len(ours) != len(theirs):
        return "they have another structure"
    for own, other in zip(ours, theirs, strict=True):
        are_numbers = all(isinstance(leaf[1], (int, float, complex)) for leaf in (own, other))
        if own[0] != other[0] and not (are_numbers and {own[0], other[0]} == {"value", "number"}):
            return "they have another structure"
        if own[0] == "array":
            problem = _arrays_disagree(own[1], other[1])
        elif "number" in (own[0], other[0]):
            problem = _numbers_disagree(own[1], other[1], _TOLERANCE[number])
        else:
            problem = "" if own[1] == other[1] else _became(own[1], other[1])
        if problem:
            return problem
    return ""


def _numbers_disagree(own: complex, other: complex, allowed: float) -> str:
    same = own == other or (own != own and other != other)
    if same or abs(own - other) <= allowed * abs(other) < inf:
        return ""
    return _became(own, other)


def _became(own: Any, other: Any) -> str:
    return f"{_short(other)} became {_short(own)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _arrays_disagree(own: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    if own[1] != other[1]:
        return f"an array of shape {other[1]} became {own[1]}"
    if own == other:
        return ""
    numpy = importlib.import_module("numpy")
    ours, theirs = (_as_array(numpy, each) for each in (own, other))
    if ours.dtype.kind not in "fc" and theirs.dtype.kind not in "fc":
        count = int((ours != theirs).sum())
        return f"{count} of {ours.size} elements differ" if count else ""
    allowed = max(_TOLERANCE.get(each[0], _LOOSE) for each in (own, other))
    ours, theirs = (
        each.astype("complex128" if each.dtype.kind == "c" else "float64")
        for each in (ours, theirs)
    )
    finite = numpy.isfinite(ours)
    alike = numpy.array_equal(finite, numpy.isfinite(theirs))
    # where one is not finite, the other is the same: inf is no nan, nor -inf
    if not alike or not numpy.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return "elements that are not finite differ"
    theirs = numpy.where(finite, theirs, 0.0)
    differences = numpy.abs(numpy.where(finite, ours, 0.0) - theirs)
    apart = float(numpy.linalg.norm(differences))
    size = float(numpy.linalg.norm(theirs))
    error = apart / size if size else (inf if apart else 0.0)
    of_rms = _OF_RMS if allowed <= _TOLERANCE["float32"] else _OF_RMS_IF_LOW
    beyond = differences - _OF_ELEMENT * allowed * numpy.abs(theirs)
    most = float(beyond.max(initial=0.0))
    if error <= allowed and most <= of_rms * allowed * size / max(1, theirs.size) ** 0.5:
        return ""
    index = numpy.unravel_index(int(beyond.argmax()), beyond.shape)
    place = f"; element {[int(part) for part in index]} is off by most" if index else ""
    return f"relative error {error:.2g}, {allowed:.0e} is allowed{place}"


def _as_array(numpy: Any, leaf: tuple[Any, ...]) -> Any:
    dtype = "float32" if leaf[0].startswith(("bfloat16", "float8")) else leaf[0]
    return numpy.frombuffer(leaf[2], dtype=dtype).reshape(leaf[1])


class Watched:
    """What a process sees that is not timed: the files that are opened while a file is loaded and
    steps are taken, and what else is started.
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
        self.parallel = _python_threads() > 1

    def end(self) -> None:
        self._on = False
        self.parallel |= _tasks() > self._threads

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in _READS and isinstance(args[0], str):
            self.files[args[0]] = None
        elif event in _NEW_PROCESSES:
            self.parallel |= self._stepping
            self.processes |= not self._is_by_library()
        elif event in _NEW_THREADS:
            self.parallel |= self._stepping

    def _is_by_library(self) -> bool:
        """Whether a package's own code does it, such as torch, which looks for libraries."""
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


def _python_threads() -> int:
    threading = sys.modules.get("threading")
    return threading.active_count() if threading else 1


def _serve(task: Mapping[str, Any], connection: socket.socket) -> None:
    """In a forked process: load, and do what is asked until the connection ends."""
    lines = connection.makefile("rb")

    def send(answer: Mapping[str, Any]) -> None:
        connection.sendall(json.dumps(answer).encode() + b"\n")

    try:
        member = _Member(task)
        send(member.description())
        for line in lines:
            request = json.loads(line)
            send(getattr(member, request.pop("do"))(**request))
    except BaseException as error:  # whatever the file raises
        if not isinstance(error, SideError):
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        message = str(error) if isinstance(error, SideError) else _last_line(error)
        with suppress(OSError):
            send({"error": message})


def _last_line(error: BaseException) -> str:
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


class _Member:
    """One process of one side."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        if task["core"] is not None:
            os.sched_setaffinity(0, {task["core"]})
        draw = random.Random(task["layout"])
        sizes = [int(2 ** draw.uniform(0.0, _LARGEST)) for _ in range(draw.randrange(_OBJECTS))]
        self._kept = [bytes(size) for size in sizes]
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
        while passed_s < _WARM_S or (len(times) < _WARM_STEPS and passed_s < _LONG_WARM_S):
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
            "threads": _python_threads(),
            "libraries": sorted({sysconfig.get_path(name) for name in libraries}),
            "versions": {**_versions(modules), **self._steps.versions},
            "device": self._steps.device,
        }

    def description(self) -> dict[str, Any]:
        return {"step_s": self._step_s, "items": self._steps.items, **self._probed}

    def block(self, name: str, steps: int) -> dict[str, Any]:
        lead_in = int(self._step_s[name] < _LEAD_IN_S)
        gc.disable()
        seconds = self._steps.block_s(name, steps, lead_in)
        gc.enable()
        return {"s": seconds}

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
            return {"differs": disagreement(ours, theirs, self._steps.number)}
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
        return Steps(task)
    from gpulab.engine.sides.scenario import ScenarioSteps

    return ScenarioSteps(task)


def _versions(modules: Mapping[str, str]) -> dict[str, str]:
    """Of Python and of the packages that are imported."""
    versions = {"python": platform.python_version()}
    packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    for name in sorted(packages):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    return versions


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Read orders from stdin, a line of JSON each: modules to import, or a process to fork, whose
    connection comes through a socket.
    """
    _die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    control = socket.socket(fileno=int(sys.argv[1]))
    for line in sys.stdin:
        order = json.loads(line)
        for name in order.get("preload", ()):
            with suppress(BaseException):  # then each process sees for itself
                importlib.import_module(name)
        if "fork" not in order:
            control.send(b".")
            continue
        (descriptor,) = socket.recv_fds(control, 1, 1)[1]
        gc.freeze()
        if os.fork() == 0:
            _die_with_parent()
            control.close()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                _serve(order["fork"], socket.socket(fileno=descriptor))
            finally:
                os._exit(0)
        os.close(descriptor)


if __name__ == "__main__":
    main()
