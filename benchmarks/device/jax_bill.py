"""The bill of a JAX training loop beside sums of JAX's own trace: `python jax_bill.py [SECONDS]`.

It follows a loop whose steps are marked, keeps the trace of gpulab's recording, and lets the loop
record itself. Of both the busy time of the device is summed here, by other code than gpulab's, and
compared with `gpulab --why`: a difference of over 1 % ends with exit code 1. It needs JAX.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

LOOP = """
import sys, time
import jax, jax.numpy as jnp

def loss(weights, rows):
    for weight in weights:
        rows = jnp.tanh(rows @ weight)
    return jnp.square(rows).mean()

@jax.jit
def update(weights, rows):
    value, slopes = jax.value_and_grad(loss)(weights, rows)
    return [weight - 0.1 * slope for weight, slope in zip(weights, slopes)], value

width = 1024 if jax.devices()[0].platform == "gpu" else 128
weights, rows = [jnp.full((width, width), 0.01)] * 4, jnp.ones((width, width))
end, step = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end + 0.3:
    if "own" not in globals() and time.monotonic() > end:
        own = jax.profiler.start_trace("own")
    with jax.profiler.StepTraceAnnotation("train", step_num=step):
        weights, value = update(weights, rows)
        float(value)
    time.sleep(0.002)
    step += 1
jax.profiler.stop_trace()
"""


def busy_s(path):
    """Seconds in which a stream, or without one an operation of XLA, was under way."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    events = json.loads(text)["traceEvents"]
    streams = [event for event in events if '"Stream #' in json.dumps(event)]
    threads = {(event["pid"], event["tid"]) for event in streams}
    ran = [event for event in events if event.get("ph") == "X"]
    on_gpu = [event for event in ran if (event["pid"], event["tid"]) in threads]
    on_cpu = [event for event in ran if "hlo_op" in event.get("args", {})]
    total = reached = 0.0
    for event in sorted(on_gpu or on_cpu, key=lambda event: event["ts"]):
        end = event["ts"] + event["dur"]
        total += max(0.0, end - max(event["ts"], reached))
        reached = max(reached, end)
    return total * 1e-6


def main():
    gpulab = [sys.executable, "-m", "gpulab"]
    failed = False
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "loop.py").write_text(LOOP)
        program = [sys.executable, "loop.py", *(sys.argv[1:] or ["8"])]
        flags = ["--profile", "on", "--trace", "recorded.json"]
        subprocess.run([*gpulab, "--run", *flags, "--", *program], cwd=folder, check=True)
        for path in (folder / "recorded.json", *folder.glob("own/plugins/profile/*/*.json.gz")):
            subprocess.run([*gpulab, "--why", path, "--json", folder / "why.json"], check=True)
            (bill,) = json.loads((folder / "why.json").read_text())["bills"]
            failed = failed or abs(bill["busy_s"] / busy_s(path) - 1) > 0.01
            print(f"{path.name}: busy {bill['busy_s']:.6f} s; {busy_s(path):.6f} s by sums")
    sys.exit(failed)


if __name__ == "__main__":
    main()
