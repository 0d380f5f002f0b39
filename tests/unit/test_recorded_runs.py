"""The recorded runs of today: none holds a sentence where a finding belongs, or a path of the machine it ran on."""

import json
import re

import pytest
from recorded import VERSION_2, run_file

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|tmp|home|usr)/")


@pytest.fixture(params=VERSION_2)
def text(request, tmp_path):
    return run_file(request.param, tmp_path).read_text()


def test_a_recorded_run_of_today_is_of_version_2_and_holds_findings_with_codes(text):
    header, *lines = text.splitlines()
    assert json.loads(header)["version"] == 2
    codes = set(re.findall(r'"code":"([^"]*)"', text))
    assert "text" not in codes
    assert len(lines) > 3


def test_a_recorded_run_of_today_names_no_folder_of_its_machine(text):
    assert MACHINE_PATH.findall(text) == []
