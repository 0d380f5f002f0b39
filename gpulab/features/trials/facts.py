"""What one step of a program does, as far as fixes ask: seen by hooks in a process of its own. What
a step does not call is in none of these: a fix of it would have no effect.
"""

from __future__ import annotations

import msgspec


class OptimizerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One that steps. `fused` is None where torch decides; `takes_fused`: whether it has that."""

    name: str
    fused: bool | None = None
    takes_fused: bool = False


class LoaderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`epochs`: how often a step begins it anew; 0 where it goes on with an iterator."""

    workers: int = 0
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
    """Whose forward is called."""
    not_called: int = 0
    """Models of the program whose forward is not."""
    compiled: bool = False
    autocast: bool = False
    images: bool = False
    """Whether a model that is called has 2d convolutions."""
    channels_last: bool = False
    products: dict[str, int] = {}
    convolutions: dict[str, int] = {}
    optimizers: list[OptimizerFacts] = []
    loaders: list[LoaderFacts] = []
    reads: int = 0
    """Of one value: .item(), float(), bool()."""
    inputs: list[str] = []
    """Expressions for tensors that a step reads and leaves as they are."""
    state: list[str] = []
    """The same, of tensors beside models and optimizers that it changes."""
