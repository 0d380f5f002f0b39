"""What a worker spends until its first variant is built, as it measures itself."""

import json
import subprocess
import sys
from time import perf_counter

CODE = """
import time
time.sleep(0.3)
from gpulab.engine.processes import startup
import json, os
with startup.timed("imports"):
    time.sleep(0.1)
reader, writer = os.pipe()
if not os.fork():
    with startup.timed("device"):
        time.sleep(0.05)
    os.write(writer, json.dumps(startup.startup_s()).encode())
    os._exit(0)
os.wait()
print(json.dumps([startup.startup_s(), json.loads(os.read(reader, 1000))]))
"""


def test_a_process_knows_how_long_it_has_been_there_and_hands_that_to_those_forked_from_it():
    started = perf_counter()
    text = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    ).stdout
    whole_s = perf_counter() - started
    own, forked = json.loads(text)
    assert own.keys() == {"interpreter", "imports"}
    assert 0.29 <= own["interpreter"] <= whole_s
    assert own["imports"] >= 0.1
    assert {name: forked[name] for name in own} == own
    assert forked["device"] >= 0.05
    assert sum(forked.values()) <= whole_s + 0.02  # the system counts starts in hundredths
