"""Runs of scenarios that are judged, in workers that have imported torch."""

from functools import partial

import pytest
from judged import judged
from workers import WORKERS

from gpulab.session.session import Session


@pytest.fixture
def run(module_lab, monkeypatch, capsys):
    """What a run of a file has to say of each variant but the first."""

    def run(path, **options):
        for name, value in module_lab.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(module_lab.folder)
        session = partial(Session, command=WORKERS.command)
        monkeypatch.setattr("gpulab.session.launch.Session", session)
        results = judged(module_lab.folder, path, **options)
        capsys.readouterr()
        return results

    return run
