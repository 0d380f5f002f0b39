"""What a scenario may write to the pipe of its worker: recorded events that are changed, moved,
doubled and forged.
"""

import lzma
from functools import cache

from recorded import NAMES, recorded_path

from fuzz.mutations import LINES, mutated_bytes, mutated_json, mutated_lines
from fuzz.shown import show
from gpulab.core import events as e
from gpulab.core.wire import decode
from gpulab.proc.pipes import Lines
from gpulab.session.run import Run
from gpulab.session.transcript import WorkerTranscript

_MOST, _CHUNK = 80, 4096


class _Events:
    """A source with one batch."""

    path, findings = "run.jsonl", ()

    def __init__(self, events):
        self.events = events

    ended = True

    def take(self):
        return self.events

    def now(self):
        return 9.0


def case(random):
    """(the start of a run, the bytes on the pipe)."""
    started, lines = random.choice(_recorded())
    start = random.randrange(len(lines))
    lines = [*lines[:20], *lines[start : start + _MOST]]
    framed = [b"%d " % number + line for number, line in enumerate(lines)]
    for _ in range(random.choice((1, 2, 5))):
        at = random.randrange(len(framed)) if framed else 0
        origin, _, line = framed[at].partition(b" ") if framed else (b"", b"", b"")
        match random.randrange(5):
            case 0:
                framed[at : at + 1] = [origin + b" " + mutated_json(random, line)]
            case 1:
                framed.insert(
                    at,
                    b"%d " % random.choice((0, at, at + 1, 10**6, 10**17)) + random.choice(lines),
                )
            case 2:
                framed.insert(at, random.choice(LINES))
            case 3:
                framed[at : at + 1] = [mutated_bytes(random, origin + b" " + line)]
            case _:
                framed = mutated_lines(random, framed)
    return started, b"\n".join(framed) + b"\n"


def check(stream, folder):
    """Take it in as a session does, and show what comes of it, under way and at its end."""
    started, data = stream
    transcript = WorkerTranscript(started.request.job)
    pipe = Lines()
    lines = [
        line
        for start in range(0, len(data), _CHUNK)
        for line in pipe.take(data[start : start + _CHUNK])
    ]
    taken = [transcript.take(line) for line in lines if line]
    events = [started, *(event for event in taken if event is not None)]
    for live in (True, False):
        source = _Events(
            [*events, *(e.RunInvalid(reason=problem) for problem in transcript.problems)]
        )
        source.ended = not live
        run = Run(source)
        run.poll()
        show(run)


@cache
def _recorded():
    """(the start of a run, the lines of all its events after it) of every recorded run."""
    runs = []
    for name in NAMES:
        lines = lzma.decompress(recorded_path(name).read_bytes()).splitlines()[1:]
        runs.append((decode(lines[0]), [line for line in lines[1:] if len(line) < 20_000]))
    return runs
