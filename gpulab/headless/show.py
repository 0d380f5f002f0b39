"""`--show`: the code of a scenario's variants, their kernels as CUDA C++, PTX or SASS, and how
these differ.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gpulab.catalog.catalog import Entry, find
from gpulab.catalog.kernels import kernels_of, shipped_kernels
from gpulab.core.limits import COMPILE_S
from gpulab.core.payloads import KernelText
from gpulab.core.statuses import ExitCode
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
from gpulab.headless.output import Terminal, open_terminal
from gpulab.headless.standard_streams import print_error
from gpulab.options import Options, UsageError
from gpulab.session.requests import typed_params

_NO_DISASSEMBLER = "nvdisasm, which reads machine code, is not there: pip install 'gpulab[nvrtc]'"

Kernels = Mapping[str, Sequence[KernelText]]


def show(what: str, options: Options) -> int:
    """Print them. UsageError where there is no such scenario or variant, or nothing that compiles
    it.
    """
    name, _, variant = what.rpartition(":")
    if not (name and variant.isidentifier()):
        name, variant = what, ""
    entry = find(name)
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
    arch = options.arch or "sm_90"
    page = _Page(what, entry, kernels, shown, arch, options, terminal)
    try:
        with _can_be_ended(what):
            _check_architecture(arch)
            if options.ptx or options.sass:
                page.show_machine_code()
            else:
                page.show_source()
    except CompileError as error:
        for said in getattr(error, "__notes__", ()):
            terminal.err.print(said, soft_wrap=True)
        raise UsageError(
            f"--show {what}: line {error.lineno} of {entry.path.name}: {error.msg}"
        ) from None
    return 0


@contextmanager
def _can_be_ended(what: str) -> Iterator[None]:
    """In here Ctrl-C ends the process, and so does COMPILE_S: a call of the compiler returns for
    neither, and its own handler of Ctrl-C exits with 4, which here is a wrong output.
    """
    done = threading.Event()

    def watch() -> None:
        interrupted = signal.sigtimedwait([signal.SIGINT], COMPILE_S)
        if done.is_set():
            return
        if interrupted:
            print_error(f"--show {what}: interrupted")
            os._exit(ExitCode.INTERRUPTED)
        print_error(f"--show {what}: the compiler took more than {COMPILE_S:g} s")
        os._exit(ExitCode.FAILED)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _check_architecture(arch: str) -> None:
    """UsageError where the compiler that is there does not know it."""
    try:
        known = architectures()
    except NoCompilerError:  # whoever needs it says so
        return
    if arch.rstrip("abcdefghijklmnopqrstuvwxyz") not in known:
        raise UsageError(f"--arch {arch}: this NVRTC compiles for {', '.join(known)}")


@dataclass(frozen=True)
class _Page:
    """The content of a page: the variants `shown` of an entry, and the kernels of all of them."""

    what: str
    entry: Entry
    kernels: Kernels
    shown: Sequence[str]
    arch: str
    options: Options
    terminal: Terminal

    def show_source(self) -> None:
        entry, row, shown = self.entry, self.entry.row, self.shown
        missing = None
        with_own = self.options.chosen or self.options.arch
        compiled = {} if with_own else shipped_kernels(entry.source)
        try:
            compiled |= {
                name: [read_kernel(text, self.arch, str(entry.path)) for text in texts]
                for name, texts in self.kernels.items()
            }
        except NoCompilerError as error:
            missing = error
        in_order = {name: compiled[name] for name in row.variants if name in compiled}
        made = kernel_page(in_order, row.against)
        wanted = [row.variants[0], *(name for name in row.variants[1:] if name in shown)]
        code = code_view(entry.source, wanted, None, self.kernels, made)
        self.terminal.say(f"{entry.name} · {entry.title}", "")
        self.terminal.out.print(code, soft_wrap=True)
        if missing is not None:
            self.terminal.note(str(missing), "dim")

    def show_machine_code(self) -> None:
        entry, sass = self.entry, self.options.sass
        if not any(self.kernels.get(name) for name in self.shown):
            raise UsageError(
                f"--show {self.what}: no CUDA C++ kernel in it, and Triton compiles when it runs; "
                "without --ptx and --sass its Python is shown"
            )
        listings: dict[str, list[tuple[str, Sequence[str]]]] = {}
        try:
            for name, texts in self.kernels.items():
                listings[name] = [
                    (text.name, _lines(text, self.arch, entry, sass=sass)) for text in texts
                ]
        except NoCompilerError as error:
            raise UsageError(f"--show {self.what}: {error}") from None
        self.terminal.say(f"{entry.name} · {'SASS' if sass else 'PTX'} for {self.arch}", "")
        code = machine_code(listings, entry.row.against, self.shown)
        self.terminal.out.print(code, soft_wrap=True)


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
