"""The recorded runs: none holds a path of the machine it ran on."""

import re

import pytest
from recorded import NAMES, run_file

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|tmp|home|usr)/")


@pytest.fixture(params=NAMES)
def text(request, tmp_path):
    return run_file(request.param, tmp_path).read_text()


def test_a_recorded_run_names_no_folder_of_its_machine(text):
    assert MACHINE_PATH.findall(text) == []
