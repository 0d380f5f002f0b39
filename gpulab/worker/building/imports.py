"""Which imports of a scenario take long, and may be made once by the process that forks all that measure."""

from __future__ import annotations

import importlib._bootstrap
import sysconfig
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from time import perf_counter
from types import ModuleType

_LONG_S = 0.1
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_BEFORE_CUDA = (
    "numpy",
    "scipy",
    "pandas",
    "sklearn",
    "sympy",
    "networkx",
    "transformers",
    "torch._dynamo",
    "torch._inductor",
)
"""What asks for no device while it is imported. After `cuInit` no forked process can use CUDA: of all else on a GPU
each process imports its own.
"""


class LongImports:
    """Times the imports of a process until it is told to `end`: of libraries that neither start a thread nor fork."""

    def __init__(self, device: str) -> None:
        self._on_cpu = device == "cpu"
        self._inside = 0
        """Libraries that are being imported, one by another."""
        self._modules: list[str] = []
        self._load: Callable[[ModuleSpec], ModuleType] = importlib._bootstrap._load_unlocked  # type: ignore[attr-defined]
        importlib._bootstrap._load_unlocked = self._timed  # type: ignore[attr-defined]

    @property
    def modules(self) -> list[str]:
        """The long ones so far, in their order, without those that another of them imported."""
        return list(self._modules)

    def end(self) -> None:
        importlib._bootstrap._load_unlocked = self._load  # type: ignore[attr-defined]

    def _timed(self, spec: ModuleSpec) -> ModuleType:
        if self._inside or not (spec.origin or "").startswith(_LIBRARIES):
            return self._load(spec)
        self._inside += 1
        threads, started = _threads(), perf_counter()
        try:
            module = self._load(spec)
        finally:
            self._inside -= 1
        if perf_counter() - started > _LONG_S and _threads() == threads and self._is_allowed(spec.name):
            self._modules.append(spec.name)
        return module

    def _is_allowed(self, name: str) -> bool:
        return self._on_cpu or name.startswith(_BEFORE_CUDA)


def _threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())
