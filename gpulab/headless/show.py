"""`--show`: the code of a scenario's variants, their kernels as CUDA C++, PTX or SASS, and how
these differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpulab.catalog.catalog import Entry, find
from gpulab.catalog.kernels import kernels_of, shipped_kernels
from gpulab.core.payloads import KernelText
from gpulab.features.code.view import code_view, machine_code
from gpulab.features.kernels.compiler import (
    CompileError,
    NoCompilerError,
    architectures,
    compile_kernel,
)
from gpulab.features.kernels.instructions import entry_body
from gpulab.features.kernels.reading import read_kernel, sass_lines
from gpulab.features.kernels.view import kernel_page
from gpulab.headless.options import Options
from gpulab.headless.output import Terminal, open_terminal
from gpulab.session.requests import typed_params
from gpulab.session.settings import UsageError

_ARCH = "sm_90"
_NO_DISASSEMBLER = "nvdisasm, which reads machine code, is not there: pip install 'gpulab[nvrtc]'"

Kernels = Mapping[str, Sequence[KernelText]]


def show(what: str, options: Options) -> int:
    """Print them. UsageError where there is no such scenario or variant, or nothing that compiles
    it.
    """
    if options.ptx and options.sass:
        raise UsageError(f"--show {what}: --ptx or --sass, not both")
    entry, variant = _named(what)
    terminal = open_terminal(ascii_only=options.ascii)
    scenario = entry.scenario
    if entry.error or scenario is None:
        raise UsageError(f"--show {what}: {entry.error or 'the file has no Scenario'}")
    names = tuple(scenario.variants)
    if variant and variant not in names:
        raise UsageError(
            f"--show {what}: {entry.name} has no variant {variant}; it has {', '.join(names)}"
        )
    defaults = scenario.resolve(on_cpu=False, smoke=False, chosen={})
    kernels = kernels_of(
        entry.source, names, {**defaults, **typed_params(entry.name, defaults, options.chosen)}
    )
    shown = [variant] if variant else list(names)
    arch = options.arch or _ARCH
    _check_architecture(arch)
    try:
        if options.ptx or options.sass:
            _show_machine_code(what, entry, kernels, shown, arch, options, terminal)
        else:
            _show_source(entry, kernels, shown, arch, options, terminal)
    except CompileError as error:
        terminal.err.print("\n".join(error.__notes__), soft_wrap=True)
        raise UsageError(
            f"--show {what}: line {error.lineno} of {entry.path.name}: {error.msg}"
        ) from None
    return 0


def _check_architecture(arch: str) -> None:
    """UsageError where the compiler that is there does not know it."""
    try:
        known = architectures()
    except NoCompilerError:  # whoever needs it says so
        return
    if arch.rstrip("abcdefghijklmnopqrstuvwxyz") not in known:
        raise UsageError(f"--arch {arch}: this NVRTC compiles for {', '.join(known)}")


def _named(what: str) -> tuple[Entry, str]:
    """The entry of NAME or FILE, and the variant after a colon."""
    name, _, variant = what.rpartition(":")
    return (find(name), variant) if name and variant.isidentifier() else (find(what), "")


def _show_source(
    entry: Entry,
    kernels: Kernels,
    shown: Sequence[str],
    arch: str,
    options: Options,
    terminal: Terminal,
) -> None:
    row = entry.row
    missing = None
    compiled = {} if options.chosen or options.arch else shipped_kernels(entry.source)
    try:
        compiled |= {
            name: [read_kernel(text, arch, str(entry.path)) for text in texts]
            for name, texts in kernels.items()
        }
    except NoCompilerError as error:
        missing = error
    in_order = {name: compiled[name] for name in row.variants if name in compiled}
    made = kernel_page(in_order, row.against)
    order = [row.variants[0], *(name for name in row.variants[1:] if name in shown)]
    wanted = row.variants if set(shown) == set(row.variants) else order
    terminal.say(f"{entry.name} · {entry.title}", "")
    terminal.out.print(code_view(entry.source, wanted, None, None, kernels, made), soft_wrap=True)
    if missing is not None:
        terminal.note(str(missing), "dim")


def _show_machine_code(
    what: str,
    entry: Entry,
    kernels: Kernels,
    shown: Sequence[str],
    arch: str,
    options: Options,
    terminal: Terminal,
) -> None:
    if not any(kernels.get(name) for name in shown):
        raise UsageError(
            f"--show {what}: no CUDA C++ kernel in it, and Triton compiles when it runs; without "
            "--ptx and --sass its Python is shown"
        )
    listings: dict[str, list[tuple[str, Sequence[str]]]] = {}
    try:
        for name, texts in kernels.items():
            listings[name] = [
                (text.name, _lines(text, arch, entry, sass=options.sass)) for text in texts
            ]
    except NoCompilerError as error:
        raise UsageError(f"--show {what}: {error}") from None
    terminal.say(f"{entry.name} · {'SASS' if options.sass else 'PTX'} for {arch}", "")
    terminal.out.print(machine_code(listings, entry.row.against, shown), soft_wrap=True)


def _lines(text: KernelText, arch: str, entry: Entry, *, sass: bool) -> Sequence[str]:
    compiled = compile_kernel(text, arch, str(entry.path))
    if not sass:
        body = entry_body(compiled.ptx, compiled.entry).splitlines()
        return [
            line
            for line in body
            if line.strip() not in ("", "{") and not line.strip().startswith((".loc", "//"))
        ]
    lines = sass_lines(compiled.cubin, compiled.entry)
    if lines is None:
        raise NoCompilerError(_NO_DISASSEMBLER)
    return lines
