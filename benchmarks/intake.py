"""What it costs to take events in: a worker's lines checked and decoded, folded, and written to the
run file.

    python benchmarks/intake.py [EVENTS]         # 200,000 without an argument

Batches of samples as a usual run sends them, and small events. Prints events a second of each part,
the best of three.
"""

import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fold import beginning, day

from gpulab.core.events import Log, Reported, Samples
from gpulab.core.run_file import RunFile
from gpulab.core.wire import encode
from gpulab.features.goodput.events import Phases
from gpulab.report.build import new_state
from gpulab.session.transcript import WorkerTranscript


def main(count=200_000):
    started, *others = beginning()
    batches = [event for event in islice(day(2000), 2000) if isinstance(event, (Samples, Phases))]
    small = [Reported(variant="after", name=f"figure {number}", value=1.0) for number in range(90)]
    for kind, events in (("a usual run", batches), ("small ones", small)):
        lines = [encode(event).rstrip() for event in islice(cycle(events), count)]
        rates = {"checked and decoded": [], "folded": [], "written": []}
        for _ in range(3):
            taken, taken_s = take_in(started, lines)
            rates["checked and decoded"].append(count / taken_s)
            state = new_state()
            for event in (started, *others):
                state.fold(event)
            folding_s = seconds(
                lambda state=state, taken=taken: [state.fold(event) for event in taken]
            )
            rates["folded"].append(count / folding_s)
            with tempfile.TemporaryDirectory() as folder:
                file = RunFile(Path(folder) / "run.jsonl", "0")
                rates["written"].append(
                    count / seconds(lambda file=file, taken=taken: file.append(taken))
                )
                file.close()
        size = sum(map(len, lines)) / count
        parts = ", ".join(f"{name} {max(of):,.0f}/s" for name, of in rates.items())
        print(f"{kind}, {count:,} events of {size:.0f} bytes: {parts}")


def take_in(started, lines):
    """The events of a worker's lines, as a session takes them, and its seconds."""
    transcript = WorkerTranscript(started.request.job)
    framed = [b"%d %s" % (number, line) for number, line in enumerate(lines)]
    taken = []
    taken_s = seconds(lambda: taken.extend(map(transcript.take, framed)))
    assert None not in taken
    assert not any(isinstance(event, Log) for event in taken)
    return taken, taken_s


def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
