"""CUDA C++ kernels of scenarios on the CPU, for their results: compiled by g++, the threads of a
block as fibers.

    from functools import partial
    import gpulab.features.kernels.source
    from shim import load_on_cpu  # with tests/scenarios/cuda on sys.path

    gpulab.features.kernels.source.load = load_on_cpu  # in tests: monkeypatch.setattr("gpulab.features.kernels.source.load", load_on_cpu)
    scale = CudaSource("...").kernel("scale<float>", threads=256)
    scale(blocks, x, y, 2.0, n)  # CPU tensors and numbers
    # last block and last thread first
    gpulab.features.kernels.source.load = partial(load_on_cpu, backward=True)

Blocks run one after another; a thread runs until it waits, then the next one does. So a kernel that
lacks a barrier gives other values forward than backward, or wrong ones in both. KernelError says
where a kernel would fail on a GPU, or read or write what is not its own: misaligned vectors, memory
beyond a tensor, indices beyond an array, a barrier that not all threads reach, lanes of a shuffle
that never come. Shared memory begins as NaN in every block, and so does what a shuffle takes from a
lane that is not in its mask. What it cannot find: races whose outcome is the same in both orders,
reads of less than 16 bytes behind a tensor whose value has no effect, too many registers. Blocks
cannot wait for each other (KernelError after a while). PTX is not compiled: it is under `#ifdef
__CUDA_ARCH__`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
AVAILABLE = sys.platform == "linux" and shutil.which("g++") is not None
COMPILE = [
    "g++",
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-w",
    "-U_FORTIFY_SOURCE",
    "-fstack-clash-protection",
]
CHECKS = ["-fsanitize=alignment,bounds,integer-divide-by-zero", "-fno-strict-aliasing"]
MOST_THREADS, MOST_BLOCKS = 1024, (2**31 - 1, 65535, 65535)
_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+((?:alignas|__align__)\s*\(.*?\)\s*)?([^;[]+?)\s*\b(\w+)\s*\[\s*\]\s*;"
)
_STATIC = re.compile(r"(?:\bstatic\s+)?__shared__\s+([^;]+);")
_DECLARED = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$")
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_ALIGNED = re.compile(r"\b(?:alignas|__align__)\s*\(([^()]*(?:\([^()]*\))?[^()]*)\)")
_KEPT_S = 7 * 86400
_lock = threading.Lock()
_compilers = ThreadPoolExecutor(os.cpu_count())


class KernelError(RuntimeError):
    """What a kernel did that is an error on a GPU, with the line of the scenario's file."""


class _Storage(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("argument", ctypes.c_int),
        ("placed", ctypes.c_void_p),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("bind", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint64),
        ("storages", ctypes.POINTER(_Storage)),
        ("of", ctypes.POINTER(ctypes.c_int)),
        ("values", ctypes.POINTER(ctypes.c_uint64)),
        ("storage_count", ctypes.c_int),
        ("value_count", ctypes.c_int),
        ("backward", ctypes.c_int),
        ("limit_s", ctypes.c_double),
    )


def load_on_cpu(text, file, *, backward=False, limit_s=30.0):
    """`gpulab.features.kernels.source.load` for CPU tensors. `backward` runs the last block and its
    last thread first.

    `limit_s` of processor time is what a launch may take.
    """
    defined = tuple(option for option in text.options if option.startswith("-D"))
    library = _library(text.name, text.code, text.line, defined, file)
    threads = text.threads or (1, 1, 1)
    if threads[0] * threads[1] * threads[2] > MOST_THREADS or threads[2] > 64:
        raise KernelError(f"{text.name}: a block of {threads} threads is too large")

    def launch(blocks, arguments):
        bind, letters = library.result()
        if len(arguments) != len(letters):
            raise TypeError(f"{text.name} takes {len(letters)} arguments, and got {len(arguments)}")
        if any(given > most for given, most in zip(blocks, MOST_BLOCKS, strict=True)):
            raise KernelError(f"{text.name}: {blocks} are too many blocks")
        storages, of, values = {}, [], []
        for place, (letter, argument) in enumerate(zip(letters, arguments, strict=True), 1):
            if hasattr(argument, "data_ptr"):
                if letter not in "PqQ":
                    raise TypeError(
                        f"argument {place} of {text.name} is a tensor, and the kernel takes a "
                        "number"
                    )
                if argument.device.type != "cpu":
                    raise TypeError(
                        f"argument {place} of {text.name} is a tensor on {argument.device}"
                    )
                memory = argument.untyped_storage()
                known = storages.setdefault(
                    memory.data_ptr(),
                    (len(storages), _Storage(memory.data_ptr(), memory.nbytes(), place, None)),
                )
                of.append(known[0])
                values.append(argument.data_ptr() - memory.data_ptr())
            else:
                of.append(-1)
                values.append(_bits(letter, argument, place, text.name))
        given = _Launch(
            ctypes.cast(bind, ctypes.c_void_p),
            blocks,
            threads,
            text.shared_bytes,
            (_Storage * len(storages))(*(storage for _, storage in storages.values())),
            (ctypes.c_int * len(of))(*of),
            (ctypes.c_uint64 * len(values))(*values),
            len(storages),
            len(values),
            backward,
            limit_s,
        )
        with _lock:
            said = _runtime().gpulab_launch(ctypes.byref(given))
        if said:
            raise KernelError(f"{text.name} in {file}: {said.decode()}")

    return launch


def _bits(letter, number, place, name):
    """A number as the kernel declares it, in the low bits of 64; as gpulab.features.kernels.source
    converts it.
    """
    if letter == "s":
        raise TypeError(f"parameter {place} of {name} is a struct: pass a pointer to one")
    if letter in "fd":
        return int.from_bytes(struct.pack(f"<{letter}", float(number)), "little")
    bits = 8 * struct.calcsize(letter)
    if not -(2 ** (bits - 1)) <= int(number) < 2**bits:
        raise OverflowError(
            f"{number} needs more than the {bits} bits that the kernel declares: declare it long "
            "long"
        )
    return int(number) & (2**bits - 1)


@cache
def _folder():
    """Of what is compiled, with the runtime and the header compiled in it. It stays for later
    processes, which compile the same, and goes once nothing was added for a week.
    """
    root = Path(tempfile.gettempdir()) / f"gpulab-shim-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.stat().st_uid != os.getuid():
        raise RuntimeError(f"{root} is another user's")
    for old in root.iterdir():
        if time.time() - old.stat().st_mtime > _KEPT_S:
            shutil.rmtree(old, ignore_errors=True)
    compiler = subprocess.run(["g++", "--version"], capture_output=True, check=True).stdout
    made_of = [" ".join((*COMPILE, *CHECKS)).encode(), compiler]
    made_of += [path.read_bytes() for path in sorted((*HERE.glob("*.h"), HERE / "runtime.cpp"))]
    folder = root / hashlib.sha256(b"\n".join(made_of)).hexdigest()[:24]
    if not folder.exists():
        new = Path(tempfile.mkdtemp(dir=root))
        _compile_runtime(new)
        try:
            new.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(new)
    return folder


def _compile_runtime(folder):
    header = [
        *COMPILE,
        *CHECKS,
        "-x",
        "c++-header",
        str(HERE / "shim.h"),
        "-o",
        str(folder / "shim.h.gch"),
    ]
    runtime = [*COMPILE, "-shared", str(HERE / "runtime.cpp"), "-o", str(folder / "runtime.so")]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for command in (header, runtime)]
    for process in processes:
        _, log = process.communicate()
        if process.returncode:
            raise RuntimeError(log.decode())
    (folder / "shim.h").write_text("#error its precompiled form was not used\n")


@cache
def _runtime():
    runtime = ctypes.CDLL(str(_folder() / "runtime.so"), mode=ctypes.RTLD_GLOBAL)
    runtime.gpulab_launch.restype = ctypes.c_char_p
    return runtime


@cache
def _library(name, code, line, defined, file):
    """A kernel that is being compiled, or was: several at a time, since a lesson makes all before
    it runs one.
    """
    whole = (
        f'#include "shim.h"\nnamespace kernels {{\n#line {line} "{file}"\n{rewritten(code)}\n}}\n'
        f"namespace kernels {{\n"
        f'extern "C" const char* gpulab_letters() {{ return gpulab::letters_of({name}); }}\n'
        f'extern "C" void (*gpulab_bind(const uint64_t* values))() {{ return gpulab::bind({name}, values); }}\n}}\n'
    )
    path = _folder() / hashlib.sha256("\n".join((*defined, whole)).encode()).hexdigest()[:24]
    library = path.with_suffix(".so")
    source, made = (path.with_suffix(f".{os.getpid()}{suffix}") for suffix in (".cpp", ".so"))
    # Without libubsan: the runtime has what its checks call.
    command = [
        *COMPILE,
        *CHECKS,
        *defined,
        "-shared",
        "-nostdlib",
        "-I",
        str(_folder()),
        str(source),
        "-o",
        str(made),
    ]

    def make():
        source.write_text(whole)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        source.unlink()
        if done.returncode:
            raise KernelError(f"g++ does not compile {name}:\n{done.stderr}")
        made.rename(library)

    def compiled():
        if not library.exists():
            make()
        _runtime()
        loaded = ctypes.CDLL(str(library))
        loaded.gpulab_letters.restype = ctypes.c_char_p
        return loaded.gpulab_bind, loaded.gpulab_letters().decode()

    return _compilers.submit(compiled)


def rewritten(code):
    """Arrays of shared memory as g++ takes them: static ones, which begin as NaN in each block, and
    a pointer.
    """

    def dynamic(found):
        _, kind, name = found.groups()
        return f"{kind}* {name} = reinterpret_cast<{kind}*>(gpulab_dynamic_shared());"

    def static(found):
        names = [_DECLARED.search(part.strip())[1] for part in _parts(found[1])]
        aligned = _ALIGNED.sub(r"__attribute__((aligned(\1)))", found[1])
        return f"static {aligned}; " + " ".join(
            f"gpulab_shared(&{name}, sizeof({name}));" for name in names
        )

    plain = _COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n") or " ", code)
    return _STATIC.sub(static, _DYNAMIC.sub(dynamic, plain))


def _parts(declaration):
    """The names of a declaration with their arrays: what commas part that are in no brackets."""
    depth, parts = 0, [""]
    for letter in declaration:
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
