"""The sampler as who asks it sees it: what it answers, or why there are no counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gpulab.core.findings import Finding
from gpulab.features.counters_in_time import findings
from gpulab.features.counters_in_time.environment import install_line, sampler_command
from gpulab.features.counters_in_time.rows import ROWS, SETS
from gpulab.features.counters_in_time.talking import NoAnswerError, Talk

_ANSWER_S = 60.0


class NoCountersError(Exception):
    """There are none on this machine."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.code)
        self.reason = reason


class FailedError(Exception):
    """What was asked failed; what is asked next may not."""


class Sampler:
    """Samples one device. `sets`: what can be sampled in one pass each. NoCountersError, OSError,
    and those of `Talk`.
    """

    def __init__(self, device: str, interval_ns: int, cancelled: int | None = None) -> None:
        command = sampler_command()
        index = int(device.rpartition(":")[2]) if device != "cpu" else None
        if command is None and index is None:
            raise NoCountersError(findings.counters_need_gpu(message="this run is on the CPU"))
        if command is None:
            raise NoCountersError(findings.counters_without_environment(install=install_line()))
        self._talk = Talk("the sampler", command, cancelled)
        try:
            self.package = self._asked(device=index).get("version", "")
            self.sets: list[list[str]] = [
                self._asked(do="supported", metrics=metrics, interval_ns=interval_ns)["metrics"]
                for metrics in SETS
            ]
        except BaseException:
            self.close()
            raise

    @property
    def missing(self) -> list[str]:
        """The labels of rows that this GPU does not sample."""
        sampled = {metric for metrics in self.sets for metric in metrics}
        return [row.label for row in ROWS.values() if row.metric not in sampled]

    def ratios(self, interval_ns: int) -> dict[str, float]:
        """By row, what was counted of copies of known size over that size."""
        metrics = self.sets[0]
        done = self._asked(do="check", metrics=metrics, interval_ns=interval_ns)
        once, there = done["inside_bytes"], dict(zip(metrics, done["inside"], strict=False))
        link = dict(zip(metrics, done["link"], strict=False))
        ratios = {}
        for name, row in ROWS.items():
            counted, size = there, once
            if name.startswith("pcie"):
                counted, size = link, done["link_bytes"]
            if name == "l2":
                size = 2 * once  # read and written
            if row.bytes and row.metric in counted:
                ratios[name] = row.scale * counted[row.metric] / size
        return ratios

    def start(self, metrics: Sequence[str], interval_ns: int) -> None:
        self._asked(do="start", metrics=metrics, interval_ns=interval_ns)

    def stop(self) -> list[list[float]]:
        """The samples since the start."""
        samples: list[list[float]] = self._asked(do="stop")["samples"]
        return samples

    def stop_without(self) -> None:
        """As `stop`, without the samples."""
        self._asked(do="stop", decode=False)

    def close(self) -> None:
        self._talk.close()

    def _asked(self, **asked: Any) -> dict[str, Any]:
        answer = msgspec.json.decode(self._talk.ask(msgspec.json.encode(asked), _ANSWER_S))
        code, message = answer.get("code"), answer.get("message", "")
        if code is None:
            return dict(answer)
        declared = getattr(findings, code, None)
        if declared is None:
            raise FailedError(message)
        said = {"install": install_line()} if "package" in code else {"message": message}
        raise NoCountersError(declared.from_values(said))


def probe() -> tuple[str, Finding | None]:
    """What the first GPU samples, in words, or why it samples nothing."""
    try:
        sampler = Sampler("cuda:0", 20_000)
    except (NoCountersError, NoAnswerError) as error:
        return "", error.reason
    except (FailedError, OSError) as error:
        return "", findings.counters_failed(message=str(error))
    sampler.close()
    count = len(ROWS) - len(sampler.missing)
    return f"cupti-python {sampler.package}, {count} of {len(ROWS)} rows", None
