"""Stands in for ncu where there is no GPU: runs what it is given, and prints of each variant that
took its step what ncu printed on an H200, in its NVTX range. How it ends is the content of the file
`ending` beside it; an error comes before it runs anything.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(sys.argv[0]).parent
ARGUMENTS = sys.argv[1:]
RANGES = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
RANGE = '{} ""<default domain>:gpulab:{}:none:none:none:none:none:none"" '
STEP = RANGE.format(9, "step")
if "--import" in ARGUMENTS:
    report = Path(ARGUMENTS[ARGUMENTS.index("--import") + 1])
    head, units, *kernels = (HERE / "printed.csv").read_text().splitlines()
    print("==PROF== reading", f'"{RANGES}",{head}', f'"",{units}', sep="\n")
    for number, variant in enumerate(report.read_text().split()):
        print(*(f'"{STEP} {RANGE.format(number, variant)}",{row}' for row in kernels), sep="\n")
    sys.exit()
ending = (HERE / "ending").read_text()
if ending.startswith("==ERROR=="):
    print(ending)
    sys.exit(1)
place = ARGUMENTS.index("--export") + 1
report = Path(ARGUMENTS[place].replace("%%", "%"))
command = ARGUMENTS[place + 1 :]
asked = Path(command[-1])
asked.write_bytes(asked.read_bytes().replace(b'"cuda:0"', b'"cpu"'))
done = []

with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as steps:
    (HERE / "pids").open("a").write(f"{os.getpid()}\n{steps.pid}\n")
    if ending == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    for line in steps.stdout:
        print(line, end="", flush=True)
        if '"done"' in line:
            done.append(line.split('"')[3])
    if ending == "hangs":
        time.sleep(1000)
print("==PROF== Disconnected from process 1")
if ending == "counted":
    report.write_text(" ".join(done))
else:
    print(ending)
