"""Process-wide settings that a build must leave alone: they would change other variants too."""

from __future__ import annotations

import decimal
import gc
import locale
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

import torch


def modes() -> tuple[int, int]:
    """Count the torch modes for functions, and for operations, that are entered now."""
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def leave_modes(before: tuple[int, int]) -> None:
    """Leave those that were entered since."""
    functions, operations = before
    while torch._C._len_torch_function_stack() > functions:
        torch._C._pop_torch_function_stack()
    while torch._C._len_torch_dispatch_stack() > operations:
        torch._C._pop_torch_dispatch_stack(None)


_UNREADABLE = "unreadable"
Setting = tuple[Callable[[], Any], Callable[[Any], Any]]


def _attribute(path: str) -> Setting:
    """An attribute of torch, by its dotted path."""
    holder, _, name = path.rpartition(".")
    return partial(attrgetter(path), torch), lambda value: setattr(
        attrgetter(holder)(torch), name, value
    )


def _flushes_denormal() -> bool:
    tiny = 5e-324
    return tiny * 1.0 == 0.0


def _numpy_errors() -> dict[str, str]:
    numpy = sys.modules.get("numpy")
    return numpy.geterr() if numpy else {}


def _set_numpy_errors(kinds: dict[str, str]) -> None:
    if kinds:
        sys.modules["numpy"].seterr(**kinds)


def _set_decimals(digits: int) -> None:
    decimal.getcontext().prec = digits


def _set_priority(value: int) -> None:
    with suppress(OSError):  # not everybody may raise it again
        os.setpriority(os.PRIO_PROCESS, 0, value)


def _set_default_device(device: torch.device) -> None:
    # Any device, the default one too, leaves a mode behind that doubles the cost of every call.
    torch.set_default_device(None if device.type == "cpu" else device)


_ATTRIBUTES = (
    "backends.fp32_precision",
    "backends.cuda.matmul.fp32_precision",
    "backends.cudnn.fp32_precision",
    "backends.cudnn.conv.fp32_precision",
    "backends.cudnn.rnn.fp32_precision",
    "backends.mkldnn.matmul.fp32_precision",
    "backends.mkldnn.conv.fp32_precision",
    "backends.cuda.matmul.allow_tf32",
    "backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "backends.cudnn.allow_tf32",
    "backends.cudnn.enabled",
    "backends.cudnn.benchmark",
    "backends.cudnn.deterministic",
    "backends.cudnn.depthwise_kernel",
    "backends.miopen.immediate",
    "backends.mkldnn.enabled",
    "backends.mkldnn.deterministic",
    "backends.mkldnn.allow_tf32",
    "backends.mkldnn.fp32_precision",
    "backends.mkldnn.rnn.fp32_precision",
    "backends.cuda.matmul.allow_fp16_accumulation",
    "backends.opt_einsum.enabled",
    "backends.opt_einsum.strategy",
    "backends.quantized.engine",
    "utils.deterministic.fill_uninitialized_memory",
)
_FUNCTIONS = {
    "set_num_threads": "get_num_threads",
    "set_default_dtype": "get_default_dtype",
    "set_grad_enabled": "is_grad_enabled",
    "set_float32_matmul_precision": "get_float32_matmul_precision",
    "use_deterministic_algorithms": "are_deterministic_algorithms_enabled",
    "autograd.set_detect_anomaly": "is_anomaly_enabled",
    "set_autocast_cache_enabled": "is_autocast_cache_enabled",
    "backends.cuda.enable_flash_sdp": "backends.cuda.flash_sdp_enabled",
    "backends.cuda.enable_mem_efficient_sdp": "backends.cuda.mem_efficient_sdp_enabled",
    "backends.cuda.enable_math_sdp": "backends.cuda.math_sdp_enabled",
    "backends.cuda.enable_cudnn_sdp": "backends.cuda.cudnn_sdp_enabled",
    "backends.cuda.preferred_blas_library": "backends.cuda.preferred_blas_library",
    "backends.cuda.preferred_linalg_library": "backends.cuda.preferred_linalg_library",
    "backends.cuda.allow_fp16_bf16_reduction_math_sdp": (
        "backends.cuda.fp16_bf16_reduction_math_sdp_allowed"
    ),
    "backends.mha.set_fastpath_enabled": "backends.mha.get_fastpath_enabled",
    "backends.nnpack.set_flags": "_C._get_nnpack_enabled",
}
"""Of torch: what sets, and what reads."""
_AUTOCAST = {
    "set_autocast_enabled": "is_autocast_enabled",
    "set_autocast_dtype": "get_autocast_dtype",
}
"""The same of one kind of device."""


def _for_device(put: str, get: str, kind: str) -> Setting:
    return partial(getattr(torch, get), kind), partial(getattr(torch, put), kind)


_locale = partial(locale.setlocale, locale.LC_ALL)
_SETTINGS: dict[str, Setting] = {
    **{f"torch.{path}": _attribute(path) for path in _ATTRIBUTES},
    **{
        f"torch.{put}": (attrgetter(get)(torch), attrgetter(put)(torch))
        for put, get in _FUNCTIONS.items()
    },
    **{f"torch.{put}('cpu')": _for_device(put, get, "cpu") for put, get in _AUTOCAST.items()},
    **{f"torch.{put}('cuda')": _for_device(put, get, "cuda") for put, get in _AUTOCAST.items()},
    "torch.set_default_device": (torch.get_default_device, _set_default_device),
    "torch.set_flush_denormal": (_flushes_denormal, torch.set_flush_denormal),
    "torch.sparse.check_sparse_tensor_invariants": (
        torch.sparse.check_sparse_tensor_invariants.is_enabled,
        torch._C._set_check_sparse_tensor_invariants,
    ),
    "numpy.seterr": (_numpy_errors, _set_numpy_errors),
    "sys.setswitchinterval": (sys.getswitchinterval, sys.setswitchinterval),
    "os.sched_setaffinity": (partial(os.sched_getaffinity, 0), partial(os.sched_setaffinity, 0)),
    "os.chdir": (os.getcwd, os.chdir),
    "os.setpriority": (partial(os.getpriority, os.PRIO_PROCESS, 0), _set_priority),
    "locale.setlocale": (_locale, _locale),
    "decimal.getcontext": (lambda: decimal.getcontext().prec, _set_decimals),
    "gc.disable": (gc.isenabled, lambda _: gc.enable()),
    "sys.setprofile": (sys.getprofile, sys.setprofile),
    "sys.settrace": (sys.gettrace, sys.settrace),
    "torch modes": (modes, leave_modes),
}
_PRECISIONS = tuple(name for name in _SETTINGS if name.endswith("fp32_precision"))


def read() -> dict[str, Any]:
    """Every setting; what this torch does not have, or refuses to read, is marked as such."""
    values = {}
    for name, (get, _) in _SETTINGS.items():
        try:
            values[name] = get()
        except (RuntimeError, AttributeError, OSError):
            values[name] = _UNREADABLE
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        values["torch.cuda.set_device"] = torch.cuda.current_device()
        values["torch.cuda.set_stream"] = torch.cuda.current_stream()
    return values


def _same(name: str, now: Any, before: Any) -> bool:
    """Return whether a setting is what it was. The old form of a precision switch writes "ieee"
    where nothing was set; and the lab times with garbage collection off, which a step may turn on
    again.
    """
    if name == "gc.disable":
        return bool(now or not before)
    return bool(now == before) or (name in _PRECISIONS and {now, before} == {"none", "ieee"})


def put_back(before: dict[str, Any]) -> list[str]:
    """Undo every change since `before`; returns the names of the settings that had changed."""
    after = read()
    names = [name for name, value in before.items() if not _same(name, after[name], value)]
    for name in names:
        value = before[name]
        if name == "torch.cuda.set_device":
            torch.cuda.set_device(value)
        elif name == "torch.cuda.set_stream":
            torch.cuda.set_stream(value)
        elif value != _UNREADABLE and value != after[name]:
            _SETTINGS[name][1](value)
    # Restoring the old form of a precision switch moves its newer one: those once more.
    for name in _PRECISIONS if names else ():
        if before[name] != _UNREADABLE:
            _SETTINGS[name][1](before[name])
    return names
