"""jax.profiler in a followed program: its steps, one recording of them, and traces of its own.

Standard library only, and the JAX of the program. Only one trace may be recorded at a time: ours
ends as the program begins one, and none is made where it has a server for profiles.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from gzip import decompress
from pathlib import Path
from shutil import rmtree
from threading import get_ident
from typing import Any

_WINDOW = "gpulab:window"
_QUIET_FROM = (0, 8)
"""JAX before that has no options, or prints into the program's output where it starts."""


class Profiler:
    """Of the module jax._src.profiler, just imported. `stepped` is called as each step ends that
    the program has marked, and `wrote` with the folder of each trace that it has written.

    It is the follower's recorder too, while it records.
    """

    def __init__(
        self, module: Any, stepped: Callable[[], None], wrote: Callable[[str], None]
    ) -> None:
        self._module, self._start, self._stop = module, module.start_trace, module.stop_trace
        self._state = module._profile_state
        self._records = self.valid = False
        self._folder, self._thread = "", 0
        self._window: Any = None
        kind = module.StepTraceAnnotation
        kind.__exit__ = _telling(kind.__exit__, after=lambda _: stepped())
        module.start_trace = _telling(module.start_trace, before=self.discard)
        module.start_server = _telling(module.start_server, before=self.discard)
        module.stop_trace = _telling(module.stop_trace, before=self._log_folder, after=wrote)

    def _log_folder(self) -> str:
        """Return where the program's own trace goes, now that it ends."""
        self.discard()
        return str(self._state.log_dir or "")

    def started(self, folder: str) -> Profiler | None:
        """Begin a recording, without Python functions: these would take the place of the program's
        `sys.setprofile`. None where the program records itself, or its JAX is too old.
        """
        is_old = sys.modules["jax.version"].__version_info__ < _QUIET_FROM
        if is_old or self._state.profile_session or self._module._profiler_server:
            return None
        options = self._module.ProfileOptions()
        options.python_tracer_level = 0
        self._start(folder, profiler_options=options)
        self._records = self.valid = True
        self._folder, self._thread = folder, get_ident()
        return self

    def begin_window(self) -> None:
        if self._records:
            self._window = self._module.TraceAnnotation(_WINDOW)
            self._window.__enter__()

    def end_window(self) -> None:
        window, self._window = self._window, None
        if window is not None and self._thread == get_ident():
            window.__exit__(None, None, None)

    def end_marks(self) -> None:
        """There are none."""

    def stop(self) -> None:
        """Write the trace."""
        self.end_window()
        if self._records:
            self._records = False
            self._stop()

    def discard(self) -> None:
        """End it without a trace; never raises."""
        if self._records:
            self.valid = False
            with suppress(Exception):
                self.stop()
            rmtree(self._folder, ignore_errors=True)

    def export(self, file: str) -> None:
        """Unpack the trace that was written. ValueError where there is none."""
        [*_, written] = Path(self._folder).glob("plugins/profile/*/*.trace.json.gz")
        Path(file).write_bytes(decompress(written.read_bytes()))
        rmtree(self._folder, ignore_errors=True)


def _nothing(_: object = None) -> None:
    return None


def _telling(
    function: Any, before: Callable[[], Any] = _nothing, after: Callable[[Any], None] = _nothing
) -> Any:
    """Return the function with what comes before it, and after it with what that returned."""

    @wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        known = before()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        after(known)
        return result

    return told
