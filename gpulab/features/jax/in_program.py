"""jax.profiler in a followed program: its steps, one recording of them, and traces of its own.

Standard library only, and the JAX of the program. Only one trace may be recorded at a time: ours
ends as the program begins one, and none is made where it has a server for profiles, or Python
functions that it profiles itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from shutil import rmtree
from threading import get_ident
from typing import Any

_WINDOW = "gpulab:window"


class Profiler:
    """Of the module jax._src.profiler, just imported. `stepped` is called as each step ends that
    the program has marked, and `recorded` with the folder of each trace that it has written.
    """

    def __init__(
        self, module: Any, stepped: Callable[[], None], recorded: Callable[[str], None]
    ) -> None:
        self._module, self._start, self._stop = module, module.start_trace, module.stop_trace
        self._recorded = recorded
        self._recorder: Recorder | None = None
        self._serves = False
        leave = module.StepTraceAnnotation.__exit__

        def told(annotation: Any, *error: Any) -> Any:
            result = leave(annotation, *error)
            stepped()
            return result

        module.StepTraceAnnotation.__exit__ = told
        module.start_trace = self._started(module.start_trace)
        module.stop_trace = self._stopped(module.stop_trace)
        module.start_server = self._started(module.start_server, serves=True)

    def _started(self, function: Any, *, serves: bool = False) -> Any:
        @wraps(function)
        def told(*args: Any, **kwargs: Any) -> Any:
            self._serves = self._serves or serves
            if self._recorder is not None:
                self._recorder.discard()
            return function(*args, **kwargs)

        return told

    def _stopped(self, function: Any) -> Any:
        @wraps(function)
        def told(*args: Any, **kwargs: Any) -> Any:
            folder = self._folder()
            result = function(*args, **kwargs)
            self._recorded(folder)
            return result

        return told

    def _folder(self) -> str:
        folder = getattr(self._module._profile_state, "log_dir", None)
        return str(Path.cwd() / str(folder or ""))

    def started(self, folder: str) -> Recorder | None:
        """Begin a recording; None where the program records itself, or this JAX cannot record
        without Python functions, which would take the place of its own `sys.setprofile`.
        """
        options = getattr(self._module, "ProfileOptions", None)
        if options is None or self._serves or self._module._profile_state.profile_session:
            return None
        options = options()
        options.python_tracer_level = 0
        self._start(folder, profiler_options=options)
        self._recorder = Recorder(folder, self._module, self._stop, self._ended)
        return self._recorder

    def device(self) -> dict[str, str] | None:
        """Return what the program's first GPU is; None where JAX runs on none, or has not begun."""
        bridge: Any = sys.modules.get("jax._src.xla_bridge")
        if not getattr(bridge, "_backends", None):
            return None
        first = bridge.local_devices()[0]
        if first.platform not in ("gpu", "cuda"):
            return None
        return {"kind": "cuda", "name": str(first.device_kind)}

    def _ended(self) -> None:
        self._recorder = None


class Recorder:
    """A recording of a window, as the follower's of torch."""

    def __init__(self, folder: str, module: Any, stop: Any, ended: Callable[[], None]) -> None:
        self._folder, self._stop, self._ended = folder, stop, ended
        self._thread = get_ident()
        self._window = module.TraceAnnotation(_WINDOW)
        self._is_open, self.valid = False, True

    def begin_window(self) -> None:
        if self.valid:
            self._window.__enter__()
            self._is_open = True

    def end_window(self) -> None:
        if self._is_open and self._thread == get_ident():
            self._window.__exit__(None, None, None)
        self._is_open = False

    def end_marks(self) -> None:
        """There are none."""

    def stop(self) -> None:
        """Write the trace."""
        if self.valid:
            self.end_window()
            self._ended()
            self._stop()

    def discard(self) -> None:
        """End it without a trace; never raises."""
        with suppress(Exception):
            self.stop()
        self.valid = False
        rmtree(self._folder, ignore_errors=True)

    def export(self, file: str) -> None:
        """Move the trace that was written. OSError where there is none."""
        written = sorted(Path(self._folder).glob("plugins/profile/*/*.trace.json.gz"))
        if not written:
            raise FileNotFoundError(self._folder)
        written[-1].replace(file)
        rmtree(self._folder, ignore_errors=True)
