"""What a program does alone, and what it does followed by `gpulab --run --`.

A program is a text: a docstring that says what kind of program it is, then lines of comments with
a word and what it is for: `# run:` a command (python program.py), `# needs:` modules or commands.
Files that it needs besides follow it, each below a line `# --- NAME`.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

TINY = Path(__file__).with_name("tiny.py")
STDIN = b"4\nfour\n"
FOLLOW = (sys.executable, "-P", "-m", "gpulab", "--run")
TIMEOUT_S = 180
_LOGGED = re.compile(
    rb"\b(?:[A-Z]+:\d{4}-\d\d-\d\d|[VDIWEF]\d{4}) \d\d:\d\d:\d\d(?:\.\d+)?(?: \d+:\d+| \d+)?"
)
"""What torch puts before a line of its logs on stderr: a time, and a process."""
_REPORT = re.compile(rb"\n[^\n]+ \xc2\xb7 [^\n]+\n")
"""The first lines of what gpulab prints on stderr once the program has ended."""


@dataclass
class Program:
    command: list[str]
    needs: list[str]
    files: dict[str, str]

    def missing(self):
        """What it needs and is not here."""
        return [each for each in self.needs if not (shutil.which(each) or find_spec(each))]


def read(path):
    """The program of a file."""
    text, *rest = re.split(r"^# --- (\S+)\n", path.read_text(), flags=re.MULTILINE)
    told = dict(re.findall(r"^# (run|needs): (.+)$", text, flags=re.MULTILINE))
    command = shlex.split(told.get("run", "python program.py"))
    files = {"tiny.py": TINY.read_text(), "program.py": text}
    files.update(zip(rest[::2], rest[1::2], strict=True))
    return Program(command, told.get("needs", "").split(), files)


@dataclass
class Outcome:
    code: int
    stdout: bytes
    stderr: bytes
    files: dict[str, tuple[int, bytes]]
    """By path in its folder: the mode, and the bytes or the target of a link."""


def run(lab, command, prepare, *, followed, timeout_s=TIMEOUT_S):
    """The outcome of a command in a fresh folder, which is the same one each time."""
    folder = lab.folder / "here"
    # Short: loaders have sockets in it, whose paths have 108 bytes at most.
    temporary = Path(tempfile.gettempdir()) / f"following-{os.getpid()}"
    for path in (folder, lab.folder / "home", temporary):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    prepare(folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "OMP_NUM_THREADS": "1", "HOME": str(lab.folder / "home")}
    own["TMPDIR"] = str(temporary)
    # What C++ was compiled to is kept: it takes a minute, and following changes nothing of it.
    own["TORCHINDUCTOR_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"inductor-{os.getuid()}")
    flags = ("--json", str(lab.folder / "result.json"), "--output", str(lab.folder / "run.jsonl"))
    (lab.folder / "run.jsonl").unlink(missing_ok=True)
    process = subprocess.Popen(
        [*FOLLOW, *flags, "--", *command] if followed else command,
        cwd=folder,
        env=lab.env | own,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # it may send signals to its group
    )
    try:
        stdout, stderr = process.communicate(STDIN, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        stdout, stderr = process.communicate()
        stderr += b"\nkilled: it did not end"
    ended = lab.none_left(within=30)  # what it has sent to the background writes files too
    shutil.rmtree(temporary, ignore_errors=True)
    files = {"left running": (0, b"")} if not ended else {}
    for path in sorted(folder.rglob("*")):
        files[str(path.relative_to(folder))] = (path.lstat().st_mode, _content(path))
    stderr = _LOGGED.sub(b"(logged)", stderr)
    code = process.returncode
    return Outcome(code if code >= 0 else 128 - code, stdout, stderr, files)


def _content(path):
    if path.is_symlink():
        return bytes(path.readlink())
    return path.read_bytes() if path.is_file() else b""


def differences(alone, followed):
    """What following changed, in words; a program that is the same has none."""
    found = []
    if alone.code != followed.code:
        found.append(f"exit code {followed.code}, alone {alone.code}")
    if alone.stdout != followed.stdout:
        found.append(f"stdout: {_apart(alone.stdout, followed.stdout)}")
    rest = followed.stderr.removeprefix(alone.stderr)
    if not followed.stderr.startswith(alone.stderr) or not _REPORT.match(rest):
        found.append(f"stderr: {_apart(alone.stderr, followed.stderr)}")
    for name in sorted(alone.files.keys() | followed.files.keys()):
        mode, content = alone.files.get(name, (0, b"(no such file)"))
        other_mode, other = followed.files.get(name, (0, b"(no such file)"))
        if mode != other_mode:
            found.append(f"{name}: mode {other_mode:o}, alone {mode:o}")
        if content != other:
            found.append(f"{name}: {_apart(content, other)}")
    return found


def _apart(alone, followed):
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(alone, followed, strict=False))
    at = sum(1 for _ in equal)
    start = max(0, at - 60)
    return f"{followed[start : at + 200]!r}\n    alone: {alone[start : at + 200]!r}"


def prepared(program):
    """What writes the files of a program into a folder."""

    def prepare(folder):
        for name, text in program.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            os.utime(path, (1e9, 1e9))  # compiled files hold it

    return prepare


def steps_followed(lab):
    """The steps that the last result counts, and the seconds recorded of them."""
    if not (lab.folder / "result.json").exists():
        return 0, 0.0
    program = json.loads((lab.folder / "result.json").read_text())["runs"][0]["program"]
    return program["steps"] or 0, program["recorded_s"] or 0.0
