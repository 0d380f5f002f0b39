"""Exit code and output of the code blocks of README and guide, each in a folder that has the files it
names. What is measured plays a script; what is left out is listed with its reason.
"""

import lzma
import re
import shlex
import subprocess
import sys

import guide_examples
from recorded import CORPUS, recorded_path
from same_everywhere import CHECKOUT, TESTS

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGES = (CHECKOUT / "README.md", *sorted((CHECKOUT / "gpulab" / "guide").glob("*.md")))
_OVER_SCRIPT = (sys.executable, str(TESTS / "nets" / "over_script.py"))
_PROGRAM = re.compile(r"(gpulab|srun|sudo|ssh|jq|pip|python3|for|\.venv/\S+)(?=\s|$)")
_LEFT_OUT = (
    (r"pip install", "the network"),
    (r"^(srun|sudo|ssh|jq|for)\b", "other programs"),
    (r"--device cuda", "a GPU"),
    (r"--(sass|ptx|arch)|--show", "a compiler of CUDA"),
    (r"--doctor", "what the machine has"),
    (r"--serve|--watch|--class|^gpulab( --share \S+)?$|^gpulab [^-]|^gpulab -- ", "a screen"),
    (r" -- (python|torchrun)", "a program that is really run"),
    (r"--try|--what-if|--trace|--memory", "a step that is really run"),
    (r"--compare (git:|\.\.|before\.py|python:)", "a step that is really run"),
    (r"--every", "hours"),
)
_STEPS = "import torch\n\n\n" + "\n\n".join(
    f"def {name}():\n    torch.ones(64, 64).sum()\n" for name in ("step", "a", "b")
)
_STEPS += "\n\ndef inputs():\n    return ()\n"
_OF_STEPS = ("train.py", "bench.py", "before.py", "after.py", "old.py", "new.py")


def _blocks():
    """Texts and kinds by name; the cells of notebooks are one."""
    for page in _PAGES:
        if page == guide_examples.PAGE:
            continue
        for number, (kind, text) in enumerate(_BLOCK.findall(page.read_text()), 1):
            yield f"{page.stem} {number}", (kind, text)
    for number, _ in enumerate(guide_examples.notebooks(), 1):
        yield f"{guide_examples.PAGE.stem} notebook {number}", ("notebook", str(number))


_BLOCKS = dict(_blocks())


def text_of(name, folder):
    if name == "left out":
        return "\n".join(_left_out())
    kind, text = _BLOCKS[name]
    commands = [*_commands(kind, text)]
    _write_files(folder)
    if kind == "notebook":
        guide_examples.write_as_files(folder)
    elif kind == "python":
        (folder / "block.py").write_text(text)
    if any(_has_earlier_runs(command) for command in commands):
        for _ in range(2):
            _said(("--run", "my_step.py"))
    said = []
    for command in commands:
        if not _why_not(command):
            words = shlex.split(command.replace("/srv/class", "class"))[1:]
            said.append(f"$ {command}\n{_said(words)}")
    return "\n".join(said)


def _left_out():
    for name, (kind, text) in _BLOCKS.items():
        commands = [*_commands(kind, text)]
        if not commands:
            yield f"{name}: {kind or 'text'}, nothing to run"
        for command in commands:
            if why := _why_not(command):
                yield f"{name}: {why}: {command}"


def _why_not(command):
    return next((why for words, why in _LEFT_OUT if re.search(words, command)), "")


def _has_earlier_runs(command):
    return not _why_not(command) and re.search("my_step~1|--history", command)


def _commands(kind, text):
    """Its lines for a shell, without what is said beside them and what reads their output."""
    if kind == "python" and "@scenario.variant" in text:
        yield "gpulab --run block.py"
    elif kind == "notebook":
        yield f"python notebook notebook_{text}.py"
    if kind:
        return
    for line in text.replace("\\\n", " ").splitlines():
        line = line.removeprefix("$ ")
        if _PROGRAM.match(line):
            said = re.sub(r" +", " ", line) if line.startswith("srun") else re.split("  +", line)[0]
            yield said.split(" | ")[0].strip()


def _write_files(folder):
    """What blocks name: files of steps, scenarios, a trace, run files and folders."""
    for name in _OF_STEPS:
        (folder / name).write_text(_STEPS)
    scenarios = [text for kind, text in _BLOCKS.values() if kind == "python"]
    scenario = next(text for text in scenarios if "def two_passes" in text)
    (folder / "my_step.py").write_text(scenario)
    rows = next(text for text in scenarios if "def shared_rows" in text)
    (folder / "row_sums.py").write_text(rows)
    for name in ("bench", "results", "before", "after", "runs", "baseline", "class"):
        (folder / name).mkdir()
    (folder / "bench" / "my_step.py").write_text(scenario)
    (folder / "other.py").write_text(scenario)
    trace = CORPUS / "traces" / "transformer-step-h200.json.xz"
    (folder / "t.json").write_bytes(lzma.decompress(trace.read_bytes()))
    for name, run in (
        ("before.jsonl", "precision-h100-1"),
        ("after.jsonl", "precision-h200"),
        ("run.jsonl", "lesson-batched_matmul"),
        ("RUN.jsonl", "lesson-batched_matmul"),
        ("mine.jsonl", "h200/vector_add"),
        ("before/1.jsonl", "cuda_graphs-h100"),
        ("after/1.jsonl", "cuda_graphs-h100-1"),
        ("results/1.jsonl", "goodput/roofline_tour-h100-1"),
        ("results/2.jsonl", "h200/roofline_tour"),
    ):
        data = lzma.decompress(recorded_path(run).read_bytes())
        (folder / name).write_bytes(data)


def _said(words):
    done = subprocess.run(
        [*_OVER_SCRIPT, *words],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return f"exit code {done.returncode}\n{done.stdout}--- stderr\n{done.stderr}"


NAMES = [name for name, block in _BLOCKS.items() if not all(map(_why_not, _commands(*block)))]
NAMES.append("left out")
