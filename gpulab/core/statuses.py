"""The closed lists: where a run is, how its parts ended, what is concluded from it, and exit
codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Stage(StrEnum):
    """The stage that a worker is in. The order is that of a run."""

    START = "start"
    LOAD = "load"
    BUILD = "build"
    TUNE = "tune"
    CHECK = "check"
    CALIBRATE = "calibrate"
    WARM_UP = "warm-up"
    COUNT = "count"
    CEILINGS = "ceilings"
    MEASURE = "measure"
    SOLO_RUN = "solo run"
    RE_CHECK = "re-check"
    PROFILE = "profile"
    COUNTERS = "counters"
    TEARDOWN = "teardown"
    END = "end"


class Status(StrEnum):
    """The progress of a variant. PENDING is the only one that may still change into OK."""

    PENDING = "pending"
    OK = "ok"
    FAILED = "failed"
    WRONG = "wrong"
    INVALID = "invalid"
    SKIPPED = "skipped"
    OUT_OF_MEMORY = "out of memory"


class Verdict(StrEnum):
    """The conclusion of a comparison, with its meaning in the help of `--run`. UNCHECKED, WRONG and
    INVALID say why no other word may be used. NO_DIFFERENCE is of the control alone, whose interval
    holds 1.
    """

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Verdict:
        verdict = str.__new__(cls, word)
        verdict._value_ = word
        verdict.meaning = meaning
        return verdict

    FASTER = "faster", "the 99 % interval of the speedup lies beyond 1 %"
    SLOWER = "slower", "the 99 % interval of the speedup lies beyond 1 %"
    SAME = "same", "the interval lies within 2 % of 1x"
    INCONCLUSIVE = "inconclusive", "neither; it says which effect is excluded"
    NO_DIFFERENCE = "no difference"
    UNCHECKED = "unchecked", "measured, but the output was not compared with anything"
    WRONG = "wrong", "the output differs from the baseline's"
    INVALID = "invalid", "no fair comparison, or the lab's own control failed"


class Outcome(StrEnum):
    """The end of a run."""

    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class FailureKind(StrEnum):
    """The kind of failure that ended a variant or a run."""

    ERROR = "error"
    EXIT = "exit"
    OUT_OF_MEMORY = "out of memory"
    DEVICE = "device"
    CRASH = "crash"
    KILLED = "killed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class StopReason(StrEnum):
    """Why measuring ended: intervals narrow enough, or narrow beside their effects, the required
    speedup reached or not, time or epochs spent, or nothing left to compare.
    """

    WIDTH = "width"
    DECIDED = "decided"
    SETTLED = "settled"
    TIME = "time"
    EPOCHS = "epochs"
    FAILED = "failed"


class Clock(StrEnum):
    """The host's clock, launches included, or the device's own; and two ways to hold the host's
    clock wrong.

    RETURN is the host's without waiting for the device: until the calls have returned. STEP waits
    after every step.
    """

    WALL = "wall"
    DEVICE = "device"
    RETURN = "return"
    STEP = "each step"


class Shows(StrEnum):
    """The subject of a scenario: speedups, those beside memory, the first steps of a fresh process,
    or clocks.
    """

    SPEEDUP = "speedup"
    MEMORY = "memory"
    CURVE = "curve"
    CLOCKS = "clocks"


class Cache(StrEnum):
    """The state of the caches: as the step before left them, or emptied before every step."""

    HOT = "hot"
    COLD = "cold"


class Per(StrEnum):
    """The unit of work that the times in tables are per."""

    STEP = "step"
    ITEM = "item"


class CeilingChoice(StrEnum):
    """The ceilings of the device that a timed run measures: none, or those that the declared work
    needs.
    """

    NONE = "none"
    NEEDED = "needed"


class IntervalUnit(StrEnum):
    """The unit of the values that an interval is over."""

    PROCESSES = "processes"
    EPOCH_MEDIANS = "epoch medians"


class Relation(StrEnum):
    """All fixes together against the product of each: they gain less than it, more, or as much."""

    OVERLAP = "overlap"
    COMPOUND = "compound"
    MULTIPLY = "multiply"


class CheckKind(StrEnum):
    """The kinds of checks that a trust report lists, in its order."""

    OUTPUTS = "outputs"
    TIMED_STEPS = "timed steps"
    INPUTS = "inputs"
    NULL_ANSWERS = "null answers"
    DETERMINISM = "determinism"
    WORK = "work counted"
    PHYSICS = "physics"
    CONTEXT = "context and output"
    ALONE = "variants alone"
    CONTROL = "control"
    PROCESSES = "processes"
    CONTENTION = "contention"
    CLOCKS = "clocks"


class CheckState(StrEnum):
    """The state of a check: it passed, it casts doubt, it refuses the comparison, or it did not
    run.
    """

    PASSED = "passed"
    DOUBTFUL = "doubtful"
    FAILED = "failed"
    NOT_RUN = "not run"


class Grade(StrEnum):
    """The trust in a comparison: every check passed, outputs were not compared, or some check has
    doubts.
    """

    VERIFIED = "verified"
    UNCHECKED = "unchecked"
    DOUBTFUL = "doubtful"


class ExitCode(IntEnum):
    """The exit code of a run. A usage error, 2, ends a command before there is any."""

    MEASURED = 0
    FAILED = 3
    WRONG = 4
    SLOWER = 5
    INCONCLUSIVE = 6
    INVALID = 7
    OUTLIERS = 8
    """Of a fleet: some GPU is slower than the others, or has no measurement."""
    INTERRUPTED = 130


class Conclusion(StrEnum):
    """The conclusion of a run. UNDER_WAY and SKIPPED have no exit code of their own."""

    MEASURED = "measured"
    FAILED = "failed"
    WRONG = "wrong"
    SLOWER = "slower than required"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    OUTLIERS = "outliers"
    INTERRUPTED = "interrupted"
    UNDER_WAY = "under way"
    SKIPPED = "skipped"


_PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.FAILED,
    ExitCode.WRONG,
    ExitCode.INVALID,
    ExitCode.OUTLIERS,
    ExitCode.SLOWER,
    ExitCode.INCONCLUSIVE,
    ExitCode.MEASURED,
)


def conclusion_of(code: ExitCode | None) -> Conclusion:
    """None is the exit code of a run under way."""
    return Conclusion.UNDER_WAY if code is None else Conclusion[code.name]


def first_in_order(codes: Iterable[ExitCode | None]) -> ExitCode:
    """Return the exit code that counts for all of several; None, of a run under way, does not
    count.
    """
    present = set(codes)
    return next((code for code in _PRECEDENCE if code in present), ExitCode.MEASURED)


class BoundKind(StrEnum):
    """The limit of a step."""

    MEMORY = "memory"
    COMPUTE = "compute"
    POWER = "power"
    LAUNCH = "launch"
    HOST = "host"
    LATENCY = "latency"
    CACHE = "cache"
    LINK = "link"
    COMMUNICATION = "communication"
    WAITING = "waiting"
    PREEMPTED = "preempted"
    PAGE_FAULTS = "page faults"
    UNEXPLAINED = "unexplained"
    UNKNOWN = "unknown"
