"""Findings of scenario files, and of what a scenario needs and the machine lacks."""

from __future__ import annotations

from gpulab.core.findings import finding, plain

run_on_cpu = plain("run_on_cpu", "this run is on the CPU")
torch_not_installed = plain("torch_not_installed", "torch is not installed")
torch_without_cuda = plain("torch_without_cuda", "this torch is a build without CUDA")
devices_hidden = plain("devices_hidden", "CUDA_VISIBLE_DEVICES hides every device")
no_gpu = plain("no_gpu", "no NVIDIA device in this machine")
compiler_not_installed = plain("compiler_not_installed", "no C++ compiler: install g++")


@finding()
def not_installed(*, package: str, install: str) -> str:
    return f"{package} is not installed: pip install '{install}'"


@finding()
def file_unreadable(*, file: str, line: int, message: str, fix: str) -> str:
    return f"{file}, line {line}: {message}; {fix}"


@finding()
def no_scenario(*, file: str) -> str:
    return f"{file} has no Scenario"


@finding()
def takes_arguments(*, arguments: list[str]) -> str:
    return (
        f"it takes arguments ({', '.join(arguments)}), but is called without any: wrap it, or "
        "give defaults"
    )


@finding()
def hides_another(*, file: str, hidden: str, lesson: bool) -> str:
    other = "the shipped lesson of this name" if lesson else "another file of this name"
    return f"this is {file}, which hides {other}, {hidden}"
