"""A kernel as its file has it, and what a compiler made of it: measured by nobody, read from the machine code."""

from __future__ import annotations

import msgspec

from gpulab.protocol.values import Count, Fraction, Line, Name, PositiveCount


class KernelText(msgspec.Struct, frozen=True):
    """What is compiled, and how it is launched: `name` in the source `code`, which begins at `line` of its file.

    `threads` of a block, x, y and z; None where the text does not say. `shared_bytes` of dynamic shared memory.
    """

    name: str
    code: str
    line: int
    options: tuple[str, ...] = ()
    threads: tuple[int, int, int] | None = None
    shared_bytes: int = 0


class KernelCode(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel for one architecture, and how it is launched.

    `instructions` counts those of the code by class (`load_128`, `fma`, `tensor`, ...), each once however often it
    runs; `read_from` says whether that is machine code (SASS) or PTX, where there is no disassembler.
    """

    name: Line
    arch: Name
    threads: PositiveCount | None = None
    """Of a block; None where the file does not say."""
    stages: Count | None = None
    """Of Triton's software pipelining: so many rounds of a loop have their loads under way; None of CUDA C++."""
    registers: Count
    """Of a thread."""
    spill_bytes: Count = 0
    """What a thread stores to local memory, and loads again, because registers did not suffice."""
    shared_bytes: Count = 0
    """Of a block, dynamic ones included."""
    occupancy: Fraction | None = None
    """The most warps that fit on an SM at once over the most that it can hold; None where threads are not known."""
    limiter: Name | None = None
    """What keeps more blocks from fitting: threads, registers, shared memory, or blocks."""
    instructions: dict[Name, Count] = {}
    read_from: Name = "SASS"
    digest: Name = ""
    """Of the instructions with their operands, whichever registers they are in: the same code has the same."""
    bank_conflicts: PositiveCount | None = None
    """Of shared memory: passes that the worst access of a warp takes; 1 is none, None where no address is known."""
    load_use: Fraction | None = None
    store_use: Fraction | None = None
    """Of the 32-byte sectors that the worst access of a warp to global memory touches, the share that it uses."""
