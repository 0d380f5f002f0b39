"""The stand-in driver, compiled once for all tests of a session."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def standin(tmp_path_factory):
    """The folder of a libnvidia-ml.so.1 that the real client loads."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).parent / "standin.c"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1", "-o", folder / "libnvidia-ml.so.1"]
    subprocess.run([*command, source], check=True)
    return folder


@pytest.fixture
def driver(lab, standin):
    """Runs of the lab find the stand-in; `driver("lost=40")` says how it behaves, also in mid-run."""
    says = lab.folder / "standin"
    says.write_text("")
    lab.env |= {"LD_LIBRARY_PATH": str(standin), "STANDIN": f"@{says}"}

    def behave(text):
        new = says.with_suffix(".new")
        new.write_text(text)
        new.rename(says)

    return behave
