"""One loop drives a run to its end; whatever is raised in it, nothing of the run is left behind."""

import pytest
from recorded import SMALL_RUN

from gpulab.session.drive import drive_to_end


class ScriptedLive:
    """A live run that gives a batch of events at every call, and raises one that is an
    exception.
    """

    path = "run.jsonl"
    findings = ()

    def __init__(self, *batches):
        self.batches = list(batches)
        self.cancelled = self.over = self.ended = False
        self.calls = []

    def take(self):
        batch = self.batches.pop(0)
        if isinstance(batch, BaseException):
            raise batch
        self.ended = self.over = not self.batches
        return batch

    def now(self):
        return 3.0

    def wait(self, timeout_s=None):
        self.calls.append("wait" if timeout_s is None else "tick")
        self.over = self.over or (self.cancelled and timeout_s is None)
        return self.over

    def cancel(self):
        self.calls.append("cancel")
        self.cancelled = True


def test_a_run_is_driven_to_its_end_and_nothing_is_cancelled():
    live, polls = ScriptedLive(SMALL_RUN[:2], (), SMALL_RUN[2:]), []
    run = drive_to_end(live, [lambda run: polls.append((run.state.t, run.ended))])
    assert run.ended
    assert run.report.outcome == "measured"
    # after the events are in its state
    assert polls == [(SMALL_RUN[1].t, False), (SMALL_RUN[1].t, False), (SMALL_RUN[-1].t, True)]
    assert set(live.calls) == {"tick"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no event"), SystemExit(1)])
def test_whatever_a_source_raises_the_run_is_cancelled_and_waited_for(error):
    live = ScriptedLive(SMALL_RUN[:2], error, SMALL_RUN[2:])
    with pytest.raises(type(error)):
        drive_to_end(live)
    assert live.calls[-2:] == ["cancel", "wait"]
    assert live.over
