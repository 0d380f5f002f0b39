"""What rank 0 tells the other ranks of a scenario, and what they answer: lines of JSON between a
process and those that it forked.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from gpulab.core.values import ParamValue


class Order(msgspec.Struct, frozen=True, kw_only=True, tag_field="order"):
    """`key`: of the build that it is about, in the order in which rank 0 made them."""

    key: int


class BuildVariant(Order, frozen=True, tag="build"):
    variant: str
    params: dict[str, ParamValue]


class Act(Order, frozen=True, tag="act"):
    do: Literal["adopt", "restore", "step", "output", "close"]


class RunBlock(Order, frozen=True, tag="block"):
    """The rank answers twice: once it is about to begin, when it waits for rank 0's word, and when
    it is done. `restore_after`: so many steps the state is put back once more.
    """

    steps: int
    lead_in: int
    restore: bool
    restore_after: int | None = None


class UseLink(msgspec.Struct, frozen=True, kw_only=True, tag_field="order", tag="link"):
    """Take part in transfers of so many bytes over a link: one to set up, then `blocks` of
    `steps`.
    """

    link: str
    bytes: int
    steps: int
    blocks: int


AnyOrder = BuildVariant | Act | RunBlock | UseLink


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Clock and power of a GPU just after a block."""

    sm_mhz: float | None = None
    power_w: float | None = None


class Layout(msgspec.Struct, frozen=True):
    """The layout of a tensor in shared memory: its dtype by torch's name, and its shape."""

    dtype: str
    shape: list[int]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`problem`: why an order could not be carried out; `skipped`: the variant asked for it.

    `seconds`, `memory_bytes` and `reading` are those of a block, the memory at most; `tensors` are
    what an order to send outputs has written.
    """

    problem: str = ""
    skipped: bool = False
    has_state: bool = False
    seconds: float = 0.0
    memory_bytes: int | None = None
    reading: Reading = Reading()
    tensors: list[Layout] = []


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """That an order failed which nobody waits for an answer of."""

    problem: str


class Collective(msgspec.Struct, frozen=True, kw_only=True):
    """The last one that a rank has called: how many it has called by then, its name and the sizes
    of its tensors.
    """

    number: int = 0
    name: str = ""
    sizes: list[list[int]] = []

    def __str__(self) -> str:
        sizes = " and ".join("x".join(map(str, size)) for size in self.sizes[:2])
        return f"{self.name} {self.number}" + (f" of {sizes}" if sizes else "")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a rank is: the last collective that it called, and the line of the scenario's
    file that runs.
    """

    last: Collective = Collective()
    line: str = ""
