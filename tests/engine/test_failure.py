"""What an exception becomes, whatever its class does: a message, a line, and nothing that is held
on to.
"""

import gc
import weakref
from itertools import repeat

import pytest

from gpulab.core.limits import MESSAGE_LENGTH, NAMES, TEXT_LENGTH
from gpulab.core.statuses import FailureKind, Stage
from gpulab.core.wire import decode, encode
from gpulab.engine.build.lab import Names
from gpulab.engine.processes.failure import (
    failure,
    is_out_of_memory,
)
from gpulab.scenario import ScenarioError, Work


class UnspeakableError(Exception):
    def __str__(self):
        raise SystemExit(3)

    __repr__ = __str__


def mistake(call):
    """What a call raises."""
    try:
        call()
    except TypeError as error:
        return error.with_traceback(None)


CASES = {
    "str raises": (
        UnspeakableError(),
        "UnspeakableError: (str() of this UnspeakableError raises SystemExit)",
    ),
    "exit code": (
        SystemExit(UnspeakableError()),
        "sys.exit((repr() of this UnspeakableError raises SystemExit))",
    ),
    "syntax": (SyntaxError("bad", ("x.py", 3, 1, "x")), "SyntaxError: bad (x.py)"),
    "a mistyped keyword": (
        mistake(lambda: Work(print, input=1)),
        "TypeError: Work.__init__() got an unexpected keyword argument 'input': "
        "did you mean inputs?",
    ),
    "a device that is not here": (
        AssertionError("Torch not compiled with CUDA enabled"),
        "AssertionError: Torch not compiled with CUDA enabled: a scenario builds on lab.device, "
        "a plain function where its arguments are",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_odd_exception_is_described_like_any_other(name):
    error, message = CASES[name]
    event = described(error)
    assert event.cause.values["message"] == message
    assert event.kind == (FailureKind.EXIT if "exit" in name else FailureKind.ERROR)
    assert event.line == described.__code__.co_firstlineno + 2
    assert event.traceback.endswith(f"{message}\n")
    assert decode(encode(event)) == event


def described(error):
    try:
        raise error
    except BaseException as raised:
        return failure(raised, __file__, "bad", Stage.CHECK)


def test_what_the_frames_hold_is_let_go():
    class Held:
        pass

    held = []

    def fails():
        big = Held()
        held.append(weakref.ref(big))
        raise UnspeakableError

    gc.disable()
    try:
        fails()
    except UnspeakableError as error:
        failure(error, __file__, "bad", Stage.CHECK)
        assert held[0]() is None
    finally:
        gc.enable()


def test_a_deep_stack_shows_its_end():
    def deep(depth):
        return deep(depth - 1) if depth else 1 / 0

    try:
        deep(500)
    except ZeroDivisionError as error:
        event = failure(error, __file__, None, Stage.BUILD)
    assert event.traceback.endswith("ZeroDivisionError: division by zero\n")
    assert len(event.traceback) < TEXT_LENGTH


def test_a_long_stack_and_a_long_message_fit_into_one_event():
    def fails():
        error = ValueError("x" * MESSAGE_LENGTH)
        error.__notes__ = ["y" * TEXT_LENGTH] * 3
        raise error

    call = fails
    for number in range(100):
        folder = "f" * TEXT_LENGTH
        code = compile("def between():\n    call()", f"/{folder}/{number}", "exec")
        names = {"call": call}
        exec(code, names)
        call = names["between"]
    with pytest.raises(ValueError, match="x") as raised:
        call()
    event = failure(raised.value, __file__, None, Stage.BUILD)
    assert decode(encode(event)) == event


def test_the_memory_that_is_missing_is_told_from_the_text_of_its_error():
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    assert not is_out_of_memory(UnspeakableError())


def test_a_scenario_has_a_limited_number_of_names():
    names = Names("lab.phase", "data")
    for number in range(NAMES):
        assert names.take(f"phase {number}") == f"phase {number}"
    for name in repeat("one more", 2):
        with pytest.raises(ScenarioError, match="at most 100 different names"):
            names.take(name)


def test_a_long_message_is_cut_before_anything_else():
    event = described(ValueError("line\n" * 1_000_000))
    assert len(event.cause.values["message"]) <= MESSAGE_LENGTH
    assert len(event.traceback) <= MESSAGE_LENGTH
    assert "more characters)" in event.traceback
    assert decode(encode(event)) == event
