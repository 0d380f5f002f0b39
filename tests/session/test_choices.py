"""What was chosen is there for the next run of the same source, and never in the way of one."""

import pytest
from found import finding

from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile
from gpulab.core.payloads import Choice, Tried, Tuning
from gpulab.session.history import History


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def history_of(source="abc"):
    subject = ScenarioFile(scenario="x", path="", source_sha256=source, variants=())
    history = History(RunRequest(job=Measure(subject=subject)))
    history.read()
    return history


def choice(key="k", config="block=1"):
    return Choice(key=key, tuning=Tuning(tried=[Tried(config=config)]))


def after(*events, source="abc", outcome="done"):
    history = history_of(source)
    for event in (*events, e.RunEnded(outcome=outcome)):
        history.on_event(event)
    return list(history_of().choices)


def tuned(made, *, cached=False):
    return e.Tuned(variant="v", choice=made, cached=cached)


def test_what_one_run_chose_the_next_one_knows():
    assert after(tuned(choice())) == [choice()]
    assert after(tuned(choice("other"))) == [choice(), choice("other")]
    assert after(tuned(choice(config="block=2"))) == [choice("other"), choice(config="block=2")]


def test_a_run_of_another_source_does_not_nor_one_that_failed_or_was_forged():
    assert after(tuned(choice()), source="other") == []
    assert after(tuned(choice()), outcome="failed") == []
    assert after(tuned(choice()), e.RunInvalid(reason=finding("forged"))) == []
    assert after(tuned(choice(), cached=True)) == []
    assert after(tuned(choice()), outcome="cancelled") == [choice()]


def test_a_choice_of_nothing_is_none():
    nothing = Choice(key="k", tuning=Tuning(tried=[]))
    assert after(tuned(nothing), tuned(choice("other"))) == [choice("other")]
