"""The recorded runs: none holds a path of the machine it ran on."""

import re

from recorded import NAMES, run_file

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|tmp|home|usr)/")


def test_no_recorded_run_names_a_folder_of_its_machine(tmp_path):
    texts = {name: run_file(name, tmp_path).read_text() for name in NAMES}
    assert {name: MACHINE_PATH.findall(text) for name, text in texts.items()} == {
        name: [] for name in NAMES
    }
