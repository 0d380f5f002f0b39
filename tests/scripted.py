"""The command line in this process, over workers that play a script: all of it but the
measurement.
"""

import json
import sys
from functools import partial
from pathlib import Path

import over_script
from conftest import Finished

from gpulab.cli import main
from gpulab.session.session import Session

OVER_SCRIPT = (sys.executable, over_script.__file__)
"""The command line over such workers, in a process of its own."""
SCENARIO = """
    \"\"\"Scripted: x.\"\"\"
    from gpulab import Scenario, Work
    scenario = Scenario("mine", params={"n": 100, "m": "x", "fails_at": 0}, sweep={"n": (64, 4096)}, claim="2x")

    @scenario.variant
    def before(lab, n): ...

    @scenario.variant(claim="twice as fast")
    def after(lab, n): ...
"""


class CommandLine:
    """`gpulab ARGUMENTS` in the folder and the environment of a lab; its workers play the
    script.
    """

    def __init__(self, lab, monkeypatch, capsys, worker=over_script.WORKER):
        self.lab, self._capsys = lab, capsys
        for name, value in lab.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(lab.folder)
        monkeypatch.setattr("gpulab.session.launch.Session", partial(Session, command=worker))

    def __call__(self, *arguments):
        """The finished command; its `result` is what it wrote to the file of `--json`."""
        self._capsys.readouterr()
        words = [str(argument) for argument in arguments]
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code
        printed = self._capsys.readouterr()
        finished = Finished(code, printed.out, printed.err, self.lab.folder / "run.jsonl")
        target = words[words.index("--json") + 1 :][:1] if "--json" in words else []
        if code != 2 and target and Path(target[0]).is_file():
            finished.result = json.loads(Path(target[0]).read_text())
        return finished
