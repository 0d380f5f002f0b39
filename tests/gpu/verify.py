"""Every line of the project that needs a CUDA device, in one command; prints what it found.

python tests/gpu/verify.py [FOLDER]      # run files and JSON go to FOLDER, by default ./verify
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LESSONS = (
    "preallocation",
    "memory_layout",
    "channels_last",
    "batched_matmul",
    "optimizer_step",
    "batch_size",
    "precision",
)


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "verify")
    folder.mkdir(parents=True, exist_ok=True)
    gpulab = [sys.executable, "-m", "gpulab"]
    commands = [[*gpulab, "--doctor"]]
    commands += [[sys.executable, "-m", "pytest", "-m", "gpu", "-q", str(ROOT / "tests" / "gpu")]]
    for name in LESSONS:
        out = ["--json", str(folder / f"{name}.json"), "--output", str(folder / f"{name}.jsonl")]
        commands.append([*gpulab, "--run", name, "--device", "cuda:0", *out])
    commands.append([*gpulab, "--run", "batched_matmul", "--device", "cuda:0", "--set", "n=1024", "--set", "m=1024"])
    commands.append(
        [*gpulab, "--run", "batch_size", "--device", "cuda:0", "--set", "width=64", "--set", "hidden=30000000"]
    )
    failed = []
    for command in commands:
        print("\n$", " ".join(command[1:]), flush=True)
        if subprocess.run(command, check=False).returncode:
            failed.append(" ".join(command[1:]))
    print("\nfailed:", *(failed or ["nothing"]), sep="\n  ")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
