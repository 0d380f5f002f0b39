"""What a mode brings into memory before it does anything: it grows by an import at a file's top."""

import os
import subprocess
import sys

import pytest

COUNT = """
import sys
from gpulab.__main__ import main
sys.argv = ["gpulab", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
loaded = [name for name in sys.modules if name.partition(".")[0] == "gpulab"]
assert not {"torch", "textual", "numpy"} & sys.modules.keys()
print(len(loaded), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "most"), [(["--help"], 14), (["--guide", "verdict"], 16), (["--list"], 44)]
)
def test_a_mode_loads_few_modules(arguments, most):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8", "TERM": "xterm"}
    environment.pop("TMUX", None)
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stderr.split()[-1]) <= most
