"""Names that a scenario makes up while it runs: of the figures it reports, and of its phases."""

from __future__ import annotations

from gpulab.limits import NAME_LENGTH, NAMES
from gpulab.scenario import ScenarioError
from gpulab.worker.process.exception_text import short


class Names:
    """At most NAMES different ones, each a text of visible characters; ScenarioError for anything else."""

    def __init__(self, call: str, example: str) -> None:
        """`call`: what takes the names, as an author writes it."""
        self._call, self._example = call, example
        self._taken: set[str] = set()

    def take(self, name: object) -> str:
        """The name as a plain string."""
        if isinstance(name, str):
            text = str.__str__(name)
            if text in self._taken:
                return text
            if 0 < len(text) <= NAME_LENGTH and text.isprintable() and not text.isspace():
                if len(self._taken) == NAMES:
                    raise ScenarioError(
                        f"{self._call}({short(text)}): a scenario has at most {NAMES} different names of that kind"
                    )
                self._taken.add(text)
                return text
        raise ScenarioError(
            f"{self._call}({short(name)}): a name is a text of 1 to {NAME_LENGTH} visible characters, "
            f"such as {self._example!r}"
        )
