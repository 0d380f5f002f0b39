"""Findings of scenario files, and of what a scenario needs and the machine lacks."""

from __future__ import annotations

from gpulab.core.findings import finding


@finding("this run is on the CPU")
def run_on_cpu() -> None: ...
@finding("torch is not installed")
def torch_not_installed() -> None: ...


@finding()
def torch_broken(*, folder: str, message: str, code: int | None) -> str:
    """`code`: of a process that has imported it, and had no word left."""
    ended = "" if code is None else f"its import exited with {code}"
    problem = ", ".join(filter(None, (ended, message)))
    return f"torch in {folder} is broken ({problem}); pip install --force-reinstall torch"


@finding("this torch is a build without CUDA")
def torch_without_cuda() -> None: ...
@finding("CUDA_VISIBLE_DEVICES hides every device")
def devices_hidden() -> None: ...
@finding("no NVIDIA device in this machine")
def no_gpu() -> None: ...
@finding("no C++ compiler: install g++")
def compiler_not_installed() -> None: ...
@finding("{package} is not installed: pip install '{install}'")
def not_installed(*, package: str, install: str) -> None: ...
@finding("{file}, line {line}: {message}; {fix}")
def file_unreadable(*, file: str, line: int, message: str, fix: str) -> None: ...
@finding("{file} has no Scenario")
def no_scenario(*, file: str) -> None: ...
@finding()
def takes_arguments(*, arguments: list[str]) -> str:
    if arguments and arguments[0] == "self":
        returned = ", ".join(["object", *arguments[1:]])
        return (
            f"a method, which takes {', '.join(arguments)}: --with FILE:function, which returns "
            f"({returned}{',' * (len(arguments) == 1)})"
        )
    return (
        f"it takes arguments ({', '.join(arguments)}): --with FILE:function makes them, or give "
        "defaults"
    )


@finding()
def hides_another(*, file: str, hidden: str, lesson: bool) -> str:
    other = "the shipped lesson of this name" if lesson else "another file of this name"
    return f"this is {file}, which hides {other}, {hidden}"
