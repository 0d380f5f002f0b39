"""A run whose run file is handed on as it grows: for a machine that only sends bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpulab.catalog.catalog import read_file
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.session.launch import Launch, plan, start
from gpulab.session.settings import Settings, UsageError
from gpulab.session.temporary import temporary_folder

_EVERY_S = 0.5


def streamed(name: str, source: str, settings: Settings) -> Iterator[bytes]:
    """The bytes of the run file of a scenario, whose text is given with the name of its file.
    UsageError where it cannot run here. The run ends when the iterator is closed, or its process
    dies.
    """
    with temporary_folder() as folder:
        scenario = folder / Path(name).name
        scenario.write_text(source)
        launch = Launch(read_file(scenario))
        request = plan(launch, settings)
        if isinstance(request, RunReport):
            reason = sentence(request.reason) if request.reason else "it cannot run here"
            raise UsageError(f"{launch.entry.name}: {reason}")
        path = folder / "run.jsonl"
        session = start(request, path)
        try:
            with path.open("rb") as file:
                over = False
                while not over:
                    over = session.wait(_EVERY_S)
                    session.take()
                    if data := file.read():
                        yield data
        finally:
            if not session.wait(0):
                session.cancel()
                session.wait()
