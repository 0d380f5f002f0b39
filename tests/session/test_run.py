"""A run as a face sees it: the report of a source, live until its last event is taken, final
then.
"""

import pytest
from found import finding
from recorded import SMALL_RUN

from gpulab.core.statuses import Conclusion, ExitCode
from gpulab.session.run import Run


class Script:
    """A source that gives a batch of events at every call."""

    def __init__(self, *batches):
        self.path = "run.jsonl"
        self.findings = []
        self.batches = list(batches)
        self.present = 0.0

    @property
    def ended(self):
        return not self.batches

    def take(self):
        return self.batches.pop(0)

    def now(self):
        return self.present


@pytest.fixture
def source():
    return Script(SMALL_RUN[:2], [], SMALL_RUN[2:])


def test_it_is_under_way_until_the_last_event_is_taken(source):
    run = Run(source)
    outcomes, events = [], []
    while not run.ended:
        events += run.poll()
        outcomes.append(run.report.outcome)
    assert outcomes == [Conclusion.UNDER_WAY, Conclusion.UNDER_WAY, Conclusion.MEASURED]
    assert events == [*SMALL_RUN]
    assert run.report.log.head == ["é\ufffd"]  # what a reader can see of it
    assert run.report.run_file == "run.jsonl"


def test_a_source_that_ends_without_the_end_of_the_run_was_interrupted(source):
    source.batches = [SMALL_RUN[:2]]
    run = Run(source)
    run.poll()
    assert (run.report.outcome, run.report.reason) == (Conclusion.INTERRUPTED, finding("no_end"))


def test_a_required_speedup_counts_at_the_end(source):
    source.batches = [SMALL_RUN]
    run = Run(source, 1.2)
    run.poll()
    assert run.report.exit_code == ExitCode.INCONCLUSIVE
    assert run.report.reason == finding("nothing_compared", required=1.2)


def test_an_event_that_the_fold_cannot_take_in_fails_the_run_and_no_face():
    run = Run(Script(SMALL_RUN[:1], [], SMALL_RUN[1:]))
    run.source.batches[1] = [object()]
    for _ in range(3):
        run.poll()
    report = run.report
    assert (report.exit_code, report.outcome) == (ExitCode.FAILED, Conclusion.FAILED)
    assert report.reason.code == "events_make_no_sense"
    assert not report.comparisons


def test_a_report_that_cannot_be_made_is_one_of_a_failed_run():
    run = Run(Script(SMALL_RUN))
    run.poll()
    run.state.variants = "no variants"
    assert run.report.reason.code == "events_make_no_sense"
    assert run.report.exit_code == ExitCode.FAILED
