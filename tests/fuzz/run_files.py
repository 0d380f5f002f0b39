"""Run files of strangers: recorded ones with odd values, lines and bytes in them."""

import lzma
from functools import cache

from recorded import NAMES, recorded_path

from fuzz.mutations import mutated_bytes, mutated_lines
from fuzz.shown import show
from gpulab.core.run_file import RunFileError
from gpulab.session.run import FileSource, Run

_HEAD, _TAIL = 60, 40


def case(random):
    """The bytes of one."""
    lines = mutated_lines(random, random.choice(_recorded()))
    data = b"\n".join(lines) + b"\n" * random.randrange(2)
    return mutated_bytes(random, data) if random.randrange(5) == 0 else data


def check(data, folder):
    """Read the file and show everything of it; RunFileError is the only refusal."""
    path = folder / "run.jsonl"
    path.write_bytes(data)
    try:
        run = Run(FileSource(path))
    except RunFileError:
        return
    run.poll()
    show(run)


@cache
def _recorded():
    """The lines of every recorded run, those in the middle of a long one left out."""
    runs = []
    for name in NAMES:
        lines = lzma.decompress(recorded_path(name).read_bytes()).splitlines()
        short = [line for line in lines if len(line) < 20_000]
        runs.append([*short[:_HEAD], *short[_HEAD:][-_TAIL:]])
    return runs
