"""The clock that a rank of a program reads of its GPU, by the stand-in driver."""

import os
import subprocess
import sys

import pytest

from gpulab.features.program.files import AGENT

READ = """
import sys
sys.path.insert(0, sys.argv[1])
from gpulab_arrivals import _Clock
try:
    print(*_Clock(sys.argv[2]).read())
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("uuid", "behaviour", "said"),
    [
        ("GPU-stand-in-0", "gpus=1", f"{1755 / 1980} False"),
        ("GPU-stand-in-0", "reasons=0x40", f"{1755 / 1980} True"),  # heat
        ("GPU-stand-in-0", "reasons=0x4", f"{1755 / 1980} False"),  # the power limit
        ("GPU-stand-in-0", "nosup=clock", "None False"),
        ("GPU-stand-in-7", "gpus=1", "no such GPU"),
    ],
)
def test_it_is_read_of_its_own_gpu(standin, uuid, behaviour, said):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(standin), "STANDIN": behaviour}
    command = [sys.executable, "-c", READ, AGENT, uuid]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said
