"""Stands in for ncu where there is no GPU: runs what it is given, and prints what ncu printed on an
H200. How it ends is the content of the file `ending` beside it; an error comes before it runs
anything.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(sys.argv[0]).parent
ARGUMENTS = sys.argv[1:]
if "--import" in ARGUMENTS:
    report = Path(ARGUMENTS[ARGUMENTS.index("--import") + 1])
    print((HERE / "printed.csv").read_text() if report.exists() else "==ERROR== no such file")
    sys.exit()
ending = (HERE / "ending").read_text()
if ending.startswith("==ERROR=="):
    print(ending)
    sys.exit(1)
place = ARGUMENTS.index("--export") + 1
report = Path(ARGUMENTS[place].replace("%%", "%"))
if ending == "unreadable":
    report.write_bytes(b"")
    sys.exit()
command = ARGUMENTS[place + 1 :]
asked = Path(command[-1])
asked.write_bytes(asked.read_bytes().replace(b'"cuda:0"', b'"cpu"'))
with subprocess.Popen(command) as steps:
    (HERE / "pids").open("a").write(f"{steps.pid}\n")
    if ending == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if ending == "hangs":
        time.sleep(1000)
    steps.wait()
print("==PROF== Disconnected from process 1")
if ending == "counted":
    report.write_bytes(b"NVR\0")
else:
    print(ending)
