"""Signals are noted, passed on to what stops, and raised again where nothing came of them."""

import signal
import threading

import pytest

from gpulab.session.drive import SIGNALS, Interrupts


@pytest.fixture
def raised():
    """The signals that a handler of somebody else gets, for what would end this process."""
    taken = []
    before = {which: signal.getsignal(which) for which in SIGNALS}
    for which in SIGNALS:
        signal.signal(which, signal.SIG_DFL)
    yield taken
    for which, handler in before.items():
        signal.signal(which, handler)


def handlers():
    return [signal.getsignal(which) for which in SIGNALS]


@pytest.mark.parametrize("which", SIGNALS)
def test_a_signal_calls_what_stops_and_is_answered(raised, which):
    before, calls = handlers(), []
    with Interrupts() as interrupts:
        interrupts.stop_with(lambda: calls.append(which))
        signal.raise_signal(which)
        signal.raise_signal(which)
        interrupts.end(answered=True)
        assert handlers() == before
    assert calls == [which, which]
    assert interrupts.received == which


def test_what_came_before_it_is_known_what_to_stop_is_not_lost(raised):
    calls = []
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        interrupts.stop_with(lambda: calls.append("first"))
        interrupts.stop_with(lambda: calls.append("second"))
        interrupts.end(answered=True)
    assert calls == ["first", "second"]


def test_ignored_signals_and_handlers_of_others_stay(raised):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda which, _: raised.append(which))
    before = handlers()
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
    assert (raised, interrupts.received) == ([signal.SIGTERM], None)
    assert handlers() == before


def test_in_another_thread_it_leaves_every_handler_alone():
    before, seen = handlers(), []

    def work():
        with Interrupts():
            seen.extend(handlers())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == before
