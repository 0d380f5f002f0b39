"""Process-wide settings that a build must leave alone: they would change every other variant too."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

_cudnn, _matmul = torch.backends.cudnn, torch.backends.cuda.matmul


def _attribute(holder: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    return lambda: getattr(holder, name), lambda value: setattr(holder, name, value)


_SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "torch.set_num_threads": (torch.get_num_threads, torch.set_num_threads),
    "torch.set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "torch.set_default_device": (torch.get_default_device, torch.set_default_device),
    "torch.set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch.set_float32_matmul_precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "torch.use_deterministic_algorithms": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "torch.set_anomaly_enabled": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    "torch.set_autocast_enabled('cpu')": (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda on: torch.set_autocast_enabled("cpu", on),
    ),
    "torch.set_autocast_enabled('cuda')": (
        lambda: torch.is_autocast_enabled("cuda"),
        lambda on: torch.set_autocast_enabled("cuda", on),
    ),
    "torch.backends.cudnn.enabled": _attribute(_cudnn, "enabled"),
    "torch.backends.cudnn.benchmark": _attribute(_cudnn, "benchmark"),
    "torch.backends.cudnn.deterministic": _attribute(_cudnn, "deterministic"),
    "torch.backends.cudnn.allow_tf32": _attribute(_cudnn, "allow_tf32"),
    "torch.backends.cuda.matmul.allow_tf32": _attribute(_matmul, "allow_tf32"),
    "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction": _attribute(
        _matmul, "allow_fp16_reduced_precision_reduction"
    ),
    "torch.backends.mkldnn.enabled": (
        lambda: torch.backends.mkldnn.enabled,
        lambda on: torch.backends.mkldnn.set_flags(on),  # type: ignore[no-untyped-call]
    ),
    "torch.backends.cuda.enable_flash_sdp": (
        torch.backends.cuda.flash_sdp_enabled,
        torch.backends.cuda.enable_flash_sdp,
    ),
    "torch.backends.cuda.enable_mem_efficient_sdp": (
        torch.backends.cuda.mem_efficient_sdp_enabled,
        torch.backends.cuda.enable_mem_efficient_sdp,
    ),
    "torch.backends.cuda.enable_math_sdp": (torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp),
    "os.chdir": (os.getcwd, os.chdir),
}


def read() -> dict[str, Any]:
    """Every setting this torch has."""
    found = {}
    for name, (get, _) in _SETTINGS.items():
        try:
            found[name] = get()
        except (RuntimeError, AttributeError, OSError):
            continue  # torch refuses to read a TF32 switch whose new and old forms were mixed
    return found


def put_back(before: dict[str, Any]) -> list[str]:
    """Undo every change since `before`; returns the names of the settings that had changed."""
    after = read()
    names = [name for name, value in before.items() if after.get(name, value) != value]
    for name in names:
        _SETTINGS[name][1](before[name])
    return names
