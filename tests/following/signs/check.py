"""What the bill advises of each program of this folder, beside what its author planted:
`python tests/following/signs/check.py [SIGN ...]`.

Its author wrote each program twice: with a flaw, and mended. Of the mended one stand in
`truth.json` the lines in which it differs.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
SIGNS = json.loads((HERE / "truth.json").read_text())
OPTIONS = ("--telemetry", "off", "--profile", "off")


def flawed(case):
    return (HERE / case["flawed"]).read_text()


def mended(case):
    """Return the program of a case without its flaw."""
    lines = flawed(case).splitlines(keepends=True)
    for change in reversed(case["mended"]):
        start = change["at"] - 1
        end = start + change["instead_of"]
        lines[start:end] = [f"{line}\n" for line in change["lines"]]
    return "".join(lines)


def advised(program):
    """Return the signs that hold of a program, each with its share, its line and its sentence."""
    with TemporaryDirectory() as folder:
        path, target = Path(folder) / "program.py", Path(folder) / "bill.json"
        path.write_text(program)
        gpulab = [sys.executable, "-m", "gpulab", "--run", *OPTIONS, "--json", str(target)]
        command = [*gpulab, "--", sys.executable, str(path)]
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=120)
        advice = json.loads(target.read_text())["runs"][0]["bill"]["advice"]
    return {each["sign"]: each for each in advice}


def main(names):
    for case in SIGNS:
        if names and case["sign"] not in names:
            continue
        for program in (flawed, mended):
            found = advised(program(case))
            right = (case["sign"] in found) == (program is flawed)
            others = sorted({*found} - {case["sign"]})
            seen = found.get(case["sign"], {})
            row = seen.get("row") or {}
            print(
                "right" if right else "WRONG",
                case["flawed"],
                program.__name__,
                f"{seen['share']:.2f}" if seen else "-",
                row.get("lines", ""),
                case["line"] if program is flawed else "",
                f"also: {others}" if others else "",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
