"""A recording that ships is shown with the lesson as it is told now, beside the code that ran."""

import re
from shutil import copyfile

from gpulab.catalog.catalog import folders, read_file
from gpulab.catalog.recordings import recorded_name, recording, recordings
from gpulab.core.events import RunStarted
from gpulab.core.jobs import subject_of
from gpulab.session.run import FileSource
from gpulab.session.saved import entry_of, open_run

PRIVATE = re.compile(r"(^|[ ;(])[A-E](, [A-E])*(: |'s | has |, bottleneck)")
"""Sources by letters that only their authors knew."""


def request_of(path):
    return next(event.request for event in FileSource(path).take() if isinstance(event, RunStarted))


def test_every_recording_has_the_text_of_its_lesson_today():
    for path in recordings():
        request = request_of(path)
        subject = subject_of(request.job)
        today = read_file(folders()[-1] / f"{recorded_name(path)}.py")
        entry = entry_of(request)
        assert entry.row.lesson == today.row.lesson
        assert (subject.title, subject.claim) == (today.title, today.row.claim)
        assert not PRIVATE.search(
            " ".join([subject.claim, *(v.claim or "" for v in subject.variants)])
        )


def test_it_is_said_and_the_code_is_what_ran(tmp_path, monkeypatch):
    path = recording("h200/fused_softmax")
    lesson = (folders()[-1] / "fused_softmax.py").read_text()
    (tmp_path / "fused_softmax.py").write_text(lesson.replace('"""', '"""Another title\n\n', 1))
    monkeypatch.setattr("gpulab.catalog.todays.folders", lambda: [tmp_path])
    run = open_run("h200/fused_softmax")
    assert "text_of_today" in [finding.code for finding in run.report.explanations]
    # a file of somebody's own is shown as it is
    copy = tmp_path / path.name
    copyfile(path, copy)
    own, shown = subject_of(request_of(copy).job), subject_of(run.state.request.job)
    assert (own.source, own.source_sha256) == (shown.source, shown.source_sha256)
    assert own.title != shown.title == "Another title"
    assert "text_of_today" not in [
        finding.code for finding in open_run(str(copy)).report.explanations
    ]
