"""Events go to the run file and to the face in one order; a full disk ends the file, never the
run.
"""

from found import finding
from recorded import SMALL_RUN

from gpulab.core import events as e
from gpulab.core.run_file import RunFile, read_run_file
from gpulab.session.live import EventLog


def test_the_face_and_the_file_have_the_same_events(tmp_path):
    log = EventLog(RunFile(tmp_path / "run.jsonl", "0.1.0"))
    log.append(*SMALL_RUN[:2])
    assert log.take() == list(SMALL_RUN[:2])
    log.append()
    log.append(*SMALL_RUN[2:])
    assert log.take() == list(SMALL_RUN[2:])
    assert log.take() == []
    log.close()
    assert read_run_file(log.path).events == list(SMALL_RUN)


class FullDisk:
    """A run file that has room for one batch."""

    path = None

    def __init__(self):
        self.batches = []

    def append(self, events):
        if self.batches:
            raise OSError(28, "No space left on device")
        self.batches.append(events)


def test_a_full_disk_is_said_once_and_the_run_goes_on():
    file = FullDisk()
    log = EventLog(file)
    for event in SMALL_RUN[:3]:
        log.append(event)
    first, notice, *rest = log.take()
    assert first == SMALL_RUN[0]
    assert isinstance(notice, e.FindingMade)
    assert notice.finding == finding("run_file_cut", message="[Errno 28] No space left on device")
    assert rest == list(SMALL_RUN[1:3])
    assert file.batches == [(SMALL_RUN[0],)]
