"""What was chosen is there for the next run of the same source, and never in the way of one."""

import pytest

from gpulab.core import events as e
from gpulab.core.finding import finding
from gpulab.core.jobs import Calibrate, Measure, RunRequest, ScenarioFile
from gpulab.core.payloads import Choice, Tried, Tuning
from gpulab.session.choices import ChoiceCache


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gpulab" / "choices"


def cache_of(source="abc"):
    subject = ScenarioFile(scenario="x", path="", source_sha256=source, variants=())
    return ChoiceCache(RunRequest(job=Measure(subject=subject)))


def choice(key="k", config="block=1"):
    return Choice(key=key, tuning=Tuning(tried=[Tried(config=config)]))


def after(*events, source="abc", outcome="done"):
    cache = cache_of(source)
    for event in (*events, e.RunEnded(outcome=outcome)):
        cache.see(event)
    return list(cache_of().load())


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


def test_a_calibration_has_no_source():
    cache = ChoiceCache(RunRequest(job=Calibrate()))
    assert cache.load() == ()


def test_a_file_that_cannot_be_read_or_written_only_costs_another_tuning(folder):
    assert after(tuned(choice())) == [choice()]
    (file,) = folder.iterdir()
    file.write_text("{")
    assert cache_of().load() == ()
    assert after(tuned(choice("new"))) == [choice("new")]
    file.unlink()
    file.mkdir()
    assert after(tuned(choice())) == []


def test_the_file_stays_within_its_limit(folder):
    large = Tuning(tried=[Tried(config="x" * 4000)] * 100)
    after(*(tuned(Choice(key=f"{number}", tuning=large)) for number in range(10)))
    assert 0 < len(cache_of().load()) < 10
    assert cache_of().load()[-1].key == "9"


def test_files_of_old_sources_go(folder, monkeypatch):
    monkeypatch.setattr("gpulab.session.choices._MOST_FILES", 3)
    for number in range(5):
        after(tuned(choice()), source=f"{number}")
    assert len(list(folder.iterdir())) == 3
    assert cache_of("4").load()
