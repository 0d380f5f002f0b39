"""Runs of scenarios that are judged, in workers that have imported torch."""

from functools import partial

import pytest
from judged import judged
from preloaded_worker import preloaded_workers

from gpulab.session.session import Session


@pytest.fixture(scope="module")
def workers(module_lab):
    with preloaded_workers(module_lab.folder, module_lab.env) as command:
        yield command


@pytest.fixture
def run(module_lab, workers, monkeypatch, capsys):
    """What a run of a file has to say of each variant but the first."""

    def run(path, **options):
        for name, value in module_lab.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(module_lab.folder)
        monkeypatch.setattr("gpulab.session.launch.Session", partial(Session, command=workers))
        results = judged(module_lab.folder, path, **options)
        capsys.readouterr()
        return results

    return run
