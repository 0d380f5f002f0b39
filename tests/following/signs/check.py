"""What the bill advises of each program of this folder, beside what its author planted:
`python tests/following/signs/check.py [SIGN ...]`.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
SIGNS = json.loads((HERE / "truth.json").read_text())


def advised(program):
    """Return the signs that hold of a program, each with its share, its line and its sentence."""
    with TemporaryDirectory() as folder:
        target = Path(folder) / "bill.json"
        command = [
            sys.executable,
            "-m",
            "gpulab",
            "--run",
            "--telemetry",
            "off",
            "--profile",
            "off",
        ]
        command += ["--json", str(target), "--", sys.executable, str(HERE / program)]
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=120)
        advice = json.loads(target.read_text())["runs"][0]["bill"]["advice"]
    return {each["sign"]: each for each in advice}


def main(names):
    for case in SIGNS:
        if names and case["sign"] not in names:
            continue
        for kind in ("flawed", "clean"):
            found = advised(case[kind])
            right = (case["sign"] in found) == (kind == "flawed")
            others = sorted({*found} - {case["sign"]})
            seen = found.get(case["sign"], {})
            row = seen.get("row") or {}
            print(
                "right" if right else "WRONG",
                case[kind],
                f"{seen['share']:.2f}" if seen else "-",
                row.get("lines", ""),
                case["line"] if kind == "flawed" else "",
                f"also: {others}" if others else "",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
