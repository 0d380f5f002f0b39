"""The command line in this process, over workers that play a script: all of it but the
measurement.
"""

import json
import sys
from functools import partial
from pathlib import Path

from conftest import Finished

from gpulab.cli import main
from gpulab.session.session import Session

WORKER = (sys.executable, str(Path(__file__).with_name("scripted_worker.py")))
OVER_SCRIPT = (
    sys.executable,
    "-c",
    "import sys; from functools import partial; from scripted import WORKER; from gpulab.cli "
    "import main; from gpulab.session import drive, launch, session; launch.Session = "
    "partial(session.Session, command=WORKER); drive.TICK_S = 0.001; sys.exit(main())",
)
"""The command line over such workers, in a process of its own; a run of theirs ends within a usual
tick, and its progress would not be seen.
"""
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

    def __init__(self, lab, monkeypatch, capsys, worker=WORKER):
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
