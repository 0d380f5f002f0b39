"""What each check alone catches: every cheat of the gauntlet is run without what caught it, until
nothing does.

    python benchmarks/checks_alone.py [CHEAT ...]

A line per cheat with the checks that catch it, in the order in which they were switched off; and
then a line per check: how many cheats it is the first to catch, and those that nothing else
catches; and the checks that no cheat needs.
"""

import contextlib
import io
import os
import sys
import tempfile
from collections import defaultdict
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
sys.path.append(str(Path(__file__).parents[1] / "tests" / "gauntlet"))
from judged import HARMLESS, NOISY, judged
from switches import SWITCHED_OFF, SWITCHES
from tables import files_of
from workers import WORKERS

from gpulab.session import launch
from gpulab.session.session import Session

CHEATS = Path(__file__).parents[1] / "tests" / "gauntlet" / "cheats"
ROUNDS = 5
"""In each of which all checks are off that caught the cheat before."""
RUNS = 2
"""In which nothing may catch a cheat: what a check of blocks or of times finds, it finds with
luck.
"""
TIMEOUT_S = "40"
"""Of a run: a cheat that no check ends may put off more work than it can ever do."""
PROFILED = ("silent_fallback",)
OF_FINDING = {
    "wrong_in_case": "cases",
    "timed_step_is_stale": "timed blocks",
    "computes_when_waited_for": "alone",
    "remembers_its_inputs": "new values",
    "draws_when_seeded": "draws",
    "state_not_updated": "state between steps",
    "state_differs": "state between steps",
    "null_answer_passes": "null answers",
    "gradient_differs": "gradients",
    "gradients_not_left": "gradients",
    "input_without_effect": "effect and layout",
    "layout_made_in_build": "effect and layout",
    "does_not_write_its_output": "poison",
    "set_while_building": "settings",
    "set_while_stepping": "settings",
    "left_by_context": "settings",
    "ignores_its_inputs": "other seed",
    "inputs_incomplete": "other seed",
    "inputs_not_from_the_seed": "other seed",
    "output_ignores_change": "other seed",
    "above_roof": "physics",
    "just_above_roof": "physics",
    "fewer_flops": "FLOPs",
    "flops_differ": "FLOPs",
    "declares_more_bytes": "bytes",
    "tolerance_widened": "tolerance",
    "tolerance_capped": "tolerance",
    "lower_precision": "precision",
    "same_operations": "same operations",
}
"""By the code of a finding, the check that makes it: what is judged at the end needs no switch to
be without.
"""
OF_OUTPUTS = {
    "relative_error",
    "one_element_off",
    "elements_differ",
    "element_counts_differ",
    "shapes_differ",
    "output_has_nan",
}
IN_TIMED_STEPS = {"alone", "new values", "draws", "state between steps"}
SAID = frozenset(OF_FINDING) - (HARMLESS - {"lower_precision"})


def main(*names):
    files, _ = files_of(CHEATS)
    cheats = {name: file for file in files for name in file.variants}
    caught = {}
    with tempfile.TemporaryDirectory() as name, _runs(Path(name)) as run:
        for cheat in names or cheats:
            caught[cheat] = catchers(run, cheat, cheats[cheat].text(only=cheat))
            print(f"{cheat}: {', '.join(caught[cheat]) or 'nothing'}", flush=True)
    print()
    for line in table(caught):
        print(line)


@contextlib.contextmanager
def _runs(folder):
    """Runs of a cheat without some checks: the result."""
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CACHE")}
    os.environ.update(homes, NO_COLOR="1")
    os.chdir(folder)

    def run(name, text, without):
        os.environ[SWITCHED_OFF] = ",".join(without)
        path = folder / f"{name}.py"
        path.write_text(text)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return judged(folder, path, "--timeout", TIMEOUT_S, profile=name in PROFILED)[name]

    launch.Session = partial(Session, command=WORKERS.command)
    try:
        yield run
    finally:
        WORKERS.close()


def catchers(run, cheat, text):
    """The checks that catch a cheat, each once the ones before it are off; in brackets what cannot
    be switched off.
    """
    checks = []
    while len(checks) < ROUNDS and not (checks and checks[-1].startswith("[")):
        check = _catcher(run, cheat, text, checks)
        if check is None:
            break
        checks.append(check)
    return checks


def _catcher(run, cheat, text, without):
    for _ in range(RUNS):
        for check in checks_of(run(cheat, text, without)):
            if check not in without:
                return check
    return None


def checks_of(result):
    """What caught a variant: what refuses it, and after that what is said of it."""
    failed = [
        check
        for check in result.checks
        if check["state"] == "failed" and check["kind"] not in NOISY
    ]
    checks = [check_of(check["kind"], check["result"]) for check in failed]
    if result.variant["status"] in ("wrong", "invalid"):
        kinds = [check["kind"] for check in failed]
        checks.append(check_of(kinds[0] if kinds else None, result.variant["reason"]))
    elif result.variant["status"] != "ok":
        checks.append(f"[{result.variant['status']}]")
    return [*checks, *(OF_FINDING[code] for code in sorted(result.said & SAID))]


def check_of(kind, reason):
    """The check that a finding is of; in brackets one that has no switch."""
    code, values = reason["code"], reason["values"]
    check = OF_FINDING.get(code)
    if (kind == "timed steps" or code == "timed_step_is_wrong") and check not in IN_TIMED_STEPS:
        return "state between steps" if values.get("change") == "" else "timed blocks"
    if check is None and values.get("other_inputs"):
        return "other seed"
    if check is None and kind in ("outputs", None) and code in OF_OUTPUTS:
        return "outputs"
    return check or f"[{kind or 'status'}: {code}]"


def table(caught):
    """Of each check: how many cheats it is the first to catch, how many nothing else catches, and
    their names.
    """
    first, alone_caught = defaultdict(list), defaultdict(list)
    for cheat, checks in caught.items():
        if checks:
            first[checks[0]].append(cheat)
        if len(checks) == 1:
            alone_caught[checks[0]].append(cheat)
    checks = dict.fromkeys(
        [*SWITCHES, *OF_FINDING.values(), *(check for found in caught.values() for check in found)]
    )
    yield "| check | first | alone | cheats that nothing else catches |"
    yield "|---|---:|---:|---|"
    for check in sorted(checks, key=lambda check: -len(first[check])):
        yield (
            f"| {check} | {len(first[check])} | {len(alone_caught[check])} | "
            f"{', '.join(alone_caught[check])} |"
        )
    yield ""
    yield f"No cheat needs: {', '.join(check for check in checks if not alone_caught[check])}"
    yield (
        "Caught by nothing: "
        f"{', '.join(cheat for cheat, found in caught.items() if not found) or 'none'}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
