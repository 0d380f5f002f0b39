"""A worker that imports no torch: the lab's own supervisor and pipe around a few lines of Python,
in half a second.

As a command it is a worker: the file of its job defines `serve(channel, job, buffer, position,
forks)`, in place of the lab's own. What a test shows with it holds for every worker, since a
supervisor does not know what it watches.
"""

import importlib.util
import sys

from gpulab.engine.processes.channel import Channel
from gpulab.engine.processes.supervisor import supervise

COMMAND = (sys.executable, __file__)


def events_of_session(path, names, *, timeout_s=20.0, profile=None):
    """All events of a run of that file; its variants have these names."""
    # A worker needs none of it, and would take twice as long to start.
    from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
    from gpulab.core.run_file import RunFile
    from gpulab.session.session import Session

    infos = tuple(
        VariantInfo(name=name, against=None if name == names[0] else names[0]) for name in names
    )
    subject = ScenarioFile(scenario=path.stem, path=str(path), source_sha256="0", variants=infos)
    request = RunRequest(
        job=Measure(subject=subject), telemetry="off", timeout_s=timeout_s, profile=profile
    )
    session = Session(request, RunFile(path.with_suffix(".jsonl"), "0"), COMMAND)
    session.start()
    assert session.wait(timeout_s + 20)
    return session.take()


def _serve(channel, receive, forks):
    job = receive()
    spec = importlib.util.spec_from_file_location("scenario", job.subject.path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.serve(channel, job, channel.buffer, channel.position, forks)


def main():
    supervise(Channel(int(sys.argv[1])), commands=0, serve=_serve)


if __name__ == "__main__":
    main()
