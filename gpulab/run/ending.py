"""Why a run did not end well: from the warden's report, or from its absence."""

from __future__ import annotations

import re
import signal

from gpulab.model.events import LOST_PIPE, VariantFailed, WorkerExited
from gpulab.model.plain import plain
from gpulab.model.request import RunRequest


def whole_run(kind: str, stage: str, message: str) -> VariantFailed:
    """A failure of no variant in particular."""
    return VariantFailed(variant=None, kind=kind, stage=stage, message=message)


def failure(request: RunRequest, exited: WorkerExited, why_stopped: str | None) -> VariantFailed:
    """What the warden saw of the worker's end; `why_stopped`: timeout, cancelled, or None where nobody stopped it."""
    kind, message = _cause(exited)
    if why_stopped == "timeout":
        kind, message = "timeout", f"no end after {request.timeout_s:g} s: raise --timeout, or mend what never ends"
    elif why_stopped == "cancelled":
        kind, message = "cancelled", "stopped by the user"
    return VariantFailed(
        variant=exited.variant if exited.variant in {one.name for one in request.variants} else None,
        kind=kind,
        stage=exited.stage,
        message=message,
        line=_line(exited.trace, request.path),
        traceback=plain(exited.trace),
    )


def _cause(exited: WorkerExited) -> tuple[str, str]:
    if exited.signal == signal.SIGKILL:
        return "killed", "killed by the system, most likely for want of memory"
    if exited.signal:
        named = signal.Signals(exited.signal).name if exited.signal in set(signal.Signals) else exited.signal
        return "crash", f"the worker crashed: {named} ({signal.strsignal(exited.signal)})"
    if exited.code == LOST_PIPE:
        return "crash", "the scenario closed the lab's event pipe: leave file descriptors alone that you did not open"
    return "exit", f"the worker's process ended with exit code {exited.code}: os._exit, or a native library's exit"


def _line(trace: str, path: str) -> int | None:
    """The scenario's innermost line in a faulthandler stack, most recent call first."""
    found = re.search(rf'File "{re.escape(path)}", line (\d+)', trace)
    return int(found.group(1)) if found else None
