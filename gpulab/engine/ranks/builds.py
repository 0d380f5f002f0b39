"""What a build, a step and a block are where a scenario has several ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace as with_fields
from time import monotonic
from typing import Any

from gpulab.engine.build.build import Build, Builder
from gpulab.engine.build.lab import WorkerLab
from gpulab.engine.measure.clock import Interruption, WallClock
from gpulab.engine.ranks.orders import Answer
from gpulab.engine.ranks.ranks import RankError, Ranks, is_of_group
from gpulab.engine.step_clock import Block
from gpulab.scenario import Param, Variant


class RankedBuilder(Builder):
    def __init__(
        self,
        lab: WorkerLab,
        params: dict[str, Param],
        seed: int,
        wait: Callable[[], None] | None,
        ranks: Ranks,
    ) -> None:
        super().__init__(lab, params, seed, wait)
        self._ranks = ranks

    def build(
        self,
        variant: Variant,
        *,
        other_seed: int | None = None,
        params: Mapping[str, Param] | None = None,
    ) -> Build:
        """The same on every rank; those but this one with their own data, whatever the seed: what
        follows from other values on this rank then follows from them alone.
        """
        ranks = self._ranks
        key = ranks.new_build()
        given = {**self._params, **(params or {})}
        ranks.send("build", key=key, variant=variant.name, params=given)
        own: BaseException | None = None
        build: Build | None = None
        ranks.end_step()
        try:
            build = super().build(variant, other_seed=other_seed, params=params)
        except BaseException as error:
            own = error
        answers = self._answers(own)
        if own is not None:
            ranks.send("close", key=key)
            ranks.gather("teardown")
            raise own
        assert build is not None
        ranks.note_state(key, answers)
        return RankedBuild(build, ranks, key)

    def _answers(self, own: BaseException | None) -> list[Answer]:
        try:
            return self._ranks.gather("building")
        except RankError as error:
            if own is None:
                raise
            if is_of_group(own):
                raise error from own
            raise own from None


class RankedBuild(Build):
    """A build of rank 0's, and what it has the others do."""

    def __init__(self, build: Build, ranks: Ranks, key: int) -> None:
        self.__dict__.update(vars(build))
        self._ranks = ranks
        self.key = key
        self.work = with_fields(build.work, step=_Step(build.work.step, ranks, key))

    def output(self, returned: Any) -> list[Any]:
        """The outputs of all ranks, this one's first: what is right on rank 0 alone is wrong."""
        self._ranks.ask_for_outputs(self.key)
        return [super().output(returned), *self._ranks.outputs()]

    def adopt(self) -> None:
        self._ranks.send("adopt", key=self.key)
        super().adopt()

    def restore(self) -> None:
        ranks = self._ranks
        if not ranks.in_block and ranks.restores(self.key):
            ranks.send("restore", key=self.key)
        super().restore()

    def close(self) -> None:
        with suppress(RankError):
            self._ranks.send("close", key=self.key)
        super().close()
        with suppress(RankError):
            self._ranks.gather("teardown")


class _Step:
    def __init__(self, own: Callable[[], object], ranks: Ranks, key: int) -> None:
        self._own = own
        self._ranks = ranks
        self._key = key

    def __call__(self) -> object:
        ranks = self._ranks
        ranks.begin_step(self._key)
        try:
            returned = self._own()
        except BaseException as error:
            ranks.raise_cause(error)
        ranks.end_step()
        return returned


class RankedClock(WallClock):
    """Times blocks that all ranks begin at once: the slowest counts."""

    def __init__(
        self, wait: Callable[[], None] | None, flush: Callable[[], None] | None, ranks: Ranks
    ) -> None:
        super().__init__(wait, flush)
        self._ranks = ranks
        self.before_block = ranks.begin_block

    def block(
        self,
        build: Build,
        steps: int,
        *,
        lead_in: int = 1,
        restore: bool = True,
        interruption: Interruption | None = None,
    ) -> Block:
        """As of one rank."""
        assert isinstance(build, RankedBuild)
        ranks = self._ranks
        restore_after = None
        if interruption is not None and interruption.restores:
            restore_after = interruption.after
        ranks.open_block(build.key, steps, lead_in, restore=restore, restore_after=restore_after)
        try:
            block = super().block(
                build, steps, lead_in=lead_in, restore=restore, interruption=interruption
            )
            slowest_s = ranks.end_block(build.variant, block.time_s)
            return block._replace(time_s=slowest_s, ended=monotonic())
        finally:
            ranks.close_block()


def builder_of(
    lab: WorkerLab,
    params: dict[str, Param],
    seed: int,
    wait: Callable[[], None] | None,
    ranks: Ranks | None,
) -> Builder:
    """One that builds on all ranks, where there are several."""
    if ranks is None:
        return Builder(lab, params, seed, wait)
    return RankedBuilder(lab, params, seed, wait, ranks)
