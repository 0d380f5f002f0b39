"""What one step of a program does, as far as fixes ask: seen by hooks in a process of its own."""

from __future__ import annotations

import msgspec


class OptimizerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`fused` and `foreach` are None where torch decides; `takes` are the names it has at all."""

    name: str
    fused: bool | None = None
    foreach: bool | None = None
    takes: list[str] = []
    on_device: bool = False
    """Whether all of its parameters are on a GPU."""


class LoaderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`epochs`: how often a step begins it anew; 0 where it goes on with an iterator."""

    workers: int = 0
    pinned: bool = False
    persistent: bool = False
    epochs: int = 0


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts are of one step. `products` and `convolutions` by dtype of what they compute in."""

    device: str = "cpu"
    capability: tuple[int, int] | None = None
    bf16: bool = False
    """Whether the device has instructions for it."""
    tf32: bool = False
    """Whether it is allowed already."""
    benchmark: bool = False
    """Of cuDNN."""
    compiler: str = ""
    """Why torch.compile has none; empty where it has."""
    cores: int = 1
    models: int = 0
    compiled: bool = False
    autocast: bool = False
    images: bool = False
    """Whether a model has 2d convolutions."""
    channels_last: bool = False
    products: dict[str, int] = {}
    convolutions: dict[str, int] = {}
    attentions: dict[str, int] = {}
    operations: int = 0
    optimizers: list[OptimizerFacts] = []
    loaders: list[LoaderFacts] = []
    zeroed: int = 0
    """Calls of zero_grad(set_to_none=False)."""
    zeroed_lines: list[str] = []
    items: int = 0
    """Reads of one value: .item(), float(), bool()."""
    item_lines: list[str] = []
    inputs: list[str] = []
    """Expressions for tensors that a step reads and leaves as they are."""
    state: list[str] = []
    """The same, of tensors beside models and optimizers that it changes."""
