"""Is the bill of a device true? Three programs on a GPU: their step by their own clock, alone and
followed; and what the device was busy, by the kept recording without gpulab's own arithmetic.

    python benchmarks/device_bill.py [SECONDS]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys, time, torch

kind, seconds = sys.argv[1], float(sys.argv[2])
net = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(24))).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
x = torch.randn(512 if kind == "images" else 1, 1024)

def images():
    optimizer.zero_grad()
    loss = net(x.cuda()).square().mean()
    loss.backward()
    optimizer.step()
    loss.item()

@torch.no_grad()
def decode():
    return net(token).argmax().item()

token, graph = x.cuda(), torch.cuda.CUDAGraph()
with torch.no_grad():
    net(token)
    torch.cuda.synchronize()
    if kind == "graph":
        with torch.cuda.graph(graph):
            out = net(token)

def replay():
    import gpulab
    graph.replay()
    out.sum().item()
    gpulab.step()

step, times = {"images": images, "decode": decode, "graph": replay}[kind], []
last = time.perf_counter() + seconds
while time.perf_counter() < last:
    began = time.perf_counter()
    step()
    times.append(time.perf_counter() - began)
print(1e6 * sorted(times)[len(times) // 2])
"""


def busy_us(trace):
    """The microseconds of the union of all that ran on the device in the recorded step."""
    kinds = ("kernel", "gpu_memcpy", "gpu_memset")
    events = [each for each in trace["traceEvents"] if each.get("cat") in kinds]
    busy = until = 0.0
    for each in sorted(events, key=lambda each: each["ts"]):
        end = each["ts"] + each["dur"]
        busy += max(0.0, end - max(until, each["ts"]))
        until = max(until, end)
    return busy


def main(seconds):
    for kind in ("images", "decode", "graph"):
        with tempfile.TemporaryDirectory() as folder:
            program, result, trace = (Path(folder) / name for name in ("p.py", "r.json", "t.json"))
            program.write_text(PROGRAM)
            command = [sys.executable, str(program), kind, str(seconds)]
            flags = ["--run", "--trace", str(trace), "--json", str(result)]
            followed = [sys.executable, "-m", "gpulab", *flags, "--", *command]
            alone, beside = (
                float(subprocess.run(each, stdout=subprocess.PIPE, check=True).stdout)
                for each in (command, followed)
            )
            bill = json.loads(result.read_text())["runs"][0]["bill"]["device"]
            rows = bill["rows"]
            busy = [
                row for row in rows if row["cause"].startswith("device") and ":" not in row["cause"]
            ]
            print(
                f"{kind}: step {alone:.0f} us alone, {beside:.0f} followed, in the bill "
                f"{1e6 * bill['wall_s']:.0f}; busy {busy_us(json.loads(trace.read_text())):.0f} us, "
                f"in the bill {1e6 * sum(row['seconds'] for row in busy):.0f}"
            )
            for row in rows[:8]:
                place = f"{row['file']}:{row['lines']} {row['function']} {row['of'][:40]}"
                print(f"  {row['seconds'] / bill['wall_s']:6.1%} {row['cause']} {place}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
