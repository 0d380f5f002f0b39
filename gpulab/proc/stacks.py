"""The stack of a thread as another process sees it, at moments that nothing in the thread chooses.

A handler of a signal in Python runs where the interpreter looks for signals: from 3.10 on after
calls and jumps, and not after operators. What `a @ b` takes would stand at the next call. So the
frames are read from outside, by process_vm_readv, which stops nobody, and written into a file that
both processes have in memory; samples within the process take the place from there. Where the
system does not allow it, or the interpreter is another one, their place is that of the handler.

A followed program loads this file too: standard library only, for Python 3.9 and later.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from types import CodeType, ModuleType
from typing import Any, NamedTuple

SUFFIX = ".stacks"
_MOST_FRAMES, SLOTS = 120, 32
HEAD = struct.Struct("QdQQ6q")
"""Process, seconds between looks, thread state, how many stacks were written; and the layout."""
EVERY_AT = 8
WRITTEN = struct.Struct("Q")
WRITTEN_AT, FIRST = 24, 128
SLOT = 8 + _MOST_FRAMES * 16
"""How many frames; of each its code, and the offset of the instruction that runs."""
SIZE = FIRST + SLOTS * SLOT


class Layout(NamedTuple):
    """Where an interpreter has what, in bytes: the frame in its thread state, over another struct
    or, with -1, at once; and in words of a frame: code, the frame before and the instruction.
    """

    struct_at: int
    frame_at: int
    code_word: int
    before_word: int
    instruction_word: int
    code_bytes: int
    """From the beginning of code to its first instruction."""


_CODE_BYTES = CodeType.__basicsize__
_LAYOUTS = {
    (3, 11): Layout(56, 8, 4, 6, 7, _CODE_BYTES),
    (3, 12): Layout(56, 0, 0, 1, 7, _CODE_BYTES),
    (3, 13): Layout(-1, 72, 0, 1, 7, _CODE_BYTES),
}
_WORDS = struct.Struct("8Q")


class Memory:
    """Of another process, or of this one: an address that is none raises OSError."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._read = ctypes.CDLL(None, use_errno=True).process_vm_readv
        self._buffer = ctypes.create_string_buffer(_WORDS.size)
        self._here = (ctypes.c_size_t * 2)(ctypes.addressof(self._buffer), _WORDS.size)
        self._there = (ctypes.c_size_t * 2)(0, _WORDS.size)

    def words(self, address: int) -> tuple[int, ...]:
        """Return the words that stand there."""
        self._there[0] = address
        if self._read(self.pid, self._here, 1, self._there, 1, 0) != _WORDS.size:
            raise OSError(ctypes.get_errno(), "no such memory")
        return _WORDS.unpack_from(self._buffer)

    def stack(self, state: int, layout: Layout) -> list[tuple[int, int]]:
        """Return the code of each frame and where it is, the innermost first.

        In its own process all reads are calls from here, so that each finds the frame of the one
        before as it was.
        """
        holder = state
        if layout.struct_at >= 0:
            holder = self.words(state + layout.struct_at)[0]
        frame = self.words(holder + layout.frame_at)[0]
        found: list[tuple[int, int]] = []
        while frame and len(found) < _MOST_FRAMES:
            words = self.words(frame)
            code = words[layout.code_word]
            offset = words[layout.instruction_word] - code - layout.code_bytes
            # outside of it in a frame of the interpreter's own, or one that is being made
            found.append((code, offset if 0 <= offset < 1 << 30 else 0))
            frame = words[layout.before_word]
        return found


class Seen:
    """A frame as it was; `frame` is the same one now, where it goes on."""

    __slots__ = ("_frame", "_line", "f_back", "f_code", "f_lasti")

    def __init__(self, code: Any, at: int, line: Any, back: Any, frame: Any) -> None:
        self.f_code, self.f_lasti, self.f_back = code, at, back
        self._line, self._frame = line, frame

    @property
    def f_lineno(self) -> int:
        """The line that it was at: of few frames anybody asks for it."""
        return int(self._line(self.f_code, self.f_lasti))

    @property
    def f_locals(self) -> Any:
        """The variables of now; none of a frame that has ended."""
        return self._frame.f_locals if self._frame is not None else {}


def _called_by(frame: Any) -> int:
    """Return where the code is that a frame called on the way to this one; 0: it is not on it."""
    within = sys._getframe()
    while within.f_back is not None:
        if within.f_back is frame:
            return id(within.f_code)
        within = within.f_back
    return 0


def _is_own(file: str) -> bool:
    packages = "-packages/" in file or file.startswith(sys.base_prefix)
    return not (file.startswith("<") or packages)


class Stacks:
    """Those of this process, in the file that another one writes."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._codes: dict[int, Any] = {}
        self._unknown: set[int] = set()
        self._files: set[str] = set()
        self._lines: dict[tuple[Any, int], int] = {}
        self._memory: Any = None
        self._taken = 0

    def begin(self, libc: Any) -> None:
        """Let the stack of this thread be read. OSError, LookupError where that cannot be."""
        self._memory = None
        layout = _LAYOUTS[sys.version_info[:2]]
        get_state = ctypes.pythonapi.PyThreadState_Get
        get_state.restype = ctypes.c_void_p
        state = get_state()
        self._check(Memory(os.getpid()).stack(state, layout))
        path = f"{self._folder}/{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, SIZE)  # on a full disk a page without a block is a SIGBUS
            libc.mmap.restype = ctypes.c_void_p
            libc.mmap.argtypes = [
                ctypes.c_void_p,
                ctypes.c_size_t,
                *[ctypes.c_int] * 3,
                ctypes.c_long,
            ]
            address = libc.mmap(None, SIZE, 3, 1, fd, 0)  # read and write, shared
        finally:
            os.close(fd)  # mmap of Python's would keep one open
        if address is None or address == ctypes.c_void_p(-1).value:
            raise OSError("no memory for stacks")
        self._memory = (ctypes.c_char * SIZE).from_address(address)
        self._taken = 0
        HEAD.pack_into(self._memory, 0, os.getpid(), 0.0, state, 0, *layout)

    def _check(self, stack: list[tuple[int, int]]) -> None:
        """LookupError where it is not the stack of this moment: another layout."""
        frame: Any = sys._getframe(2)
        known = []
        while frame is not None:
            known.append(id(frame.f_code))
            frame = frame.f_back
        found = [code for code, _ in stack if code in set(known)]
        if found[-len(known) :] != known[-len(found) :] or len(found) < min(len(known), 3):
            raise LookupError("another layout of frames")

    def look_each(self, seconds: float) -> None:
        """Say how often the stack is to be read; 0: not at all. Readings and samples are at no
        fixed distance: a reading just before each sample gave long calls the time of short ones.
        """
        if self._memory is not None:
            struct.pack_into("d", self._memory, EVERY_AT, seconds)

    def know(self, code: Any) -> None:
        """Keep code, and what is defined in it: all that is known of a frame is where its code is.
        It stays in memory for that.
        """
        if self._memory is not None and id(code) not in self._codes:
            self._codes[id(code)] = code
            self._unknown.discard(id(code))
            if not _is_own(code.co_filename):
                return
            for each in code.co_consts:
                if isinstance(each, CodeType):
                    self.know(each)

    def is_awaited(self, passed_s: float) -> bool:
        """Return whether a sample may wait for the next reading, `passed_s` after the last one."""
        if self._memory is None:
            return False
        every_s, _, written = struct.unpack_from("dQQ", self._memory, EVERY_AT)
        least_s = max(5 * every_s, 0.05)  # the reader may wait for a CPU
        return bool(0 < written == self._taken and passed_s < least_s)

    def take(self, frame: Any) -> list[Any]:
        """Return the innermost frame of each stack since the last call. `frame`: that of now."""
        if self._memory is None:
            return []
        (written,) = WRITTEN.unpack_from(self._memory, WRITTEN_AT)
        first, self._taken = max(self._taken, written - SLOTS + 1), written
        if written <= first or frame is None:
            return []
        sampling = _called_by(frame)
        now = []
        while frame is not None:
            now.append(frame)
            frame = frame.f_back
        numbers = range(first, written)
        return [seen for number in numbers if (seen := self._seen(number, now, sampling))]

    def _seen(self, number: int, now: list[Any], sampling: int) -> Any:
        """Return a stack as frames: those of now as far as they are the same; code that is not
        known is left out. None of one within the handler of samples.
        """
        at = FIRST + number % SLOTS * SLOT
        (count,) = WRITTEN.unpack_from(self._memory, at)
        if not 0 < count < _MOST_FRAMES:
            return None
        words = struct.unpack_from("Qq" * count, self._memory, at + 8)
        if sampling in words[::2]:
            return None  # its system calls are where a busy machine takes the CPU away
        seen = None
        depth = 0
        for place in range(2 * count - 2, -1, -2):
            code = self._code(words[place], now)
            if code is None:
                continue
            if seen is None and code is not now[-1].f_code:
                return None  # the frames changed while they were read
            depth += 1
            frame = now[-depth] if depth <= len(now) and now[-depth].f_code is code else None
            if frame is None:
                depth = len(now)  # no frame within it is the same one
            seen = Seen(code, words[place + 1], self.line, seen, frame)
        return seen

    def _code(self, address: int, now: list[Any]) -> Any:
        code = self._codes.get(address)
        if code is None and address not in self._unknown:
            for frame in now:
                self.know(frame.f_code)
                self._know_what_it_calls(frame)
            code = self._codes.get(address)
            if code is None:
                self._unknown.add(address)
        return code

    def _know_what_it_calls(self, frame: Any) -> None:
        """Keep the code of functions and methods that a file of the program names, and of those in
        modules that it names; once for each file.
        """
        file = frame.f_code.co_filename
        if file in self._files or not _is_own(file):
            return
        self._files.add(file)
        for value in list(frame.f_globals.values()):
            self._know_functions(value)
            if isinstance(value, ModuleType) and _is_own(getattr(value, "__file__", None) or "<"):
                for each in list(vars(value).values()):
                    self._know_functions(each)

    def _know_functions(self, value: Any) -> None:
        """Keep the code of a function, or of the methods of a class."""
        members = list(vars(value).values()) if isinstance(value, type) else [value]
        for member in members:
            code = getattr(getattr(member, "__func__", member), "__code__", None)
            if isinstance(code, CodeType):
                self.know(code)

    def line(self, code: Any, at: int) -> int:
        """Return the line of an instruction, or of what stands before one that has none, such as a
        jump back.
        """
        line = self._lines.get((code, at))
        if line is None:
            lines = [line for begins, _, line in code.co_lines() if begins <= at and line]
            line = self._lines[code, at] = lines[-1] if lines else code.co_firstlineno
        return line
