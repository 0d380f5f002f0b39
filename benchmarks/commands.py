"""The lab's command line, as benchmarks start it."""

import json
import subprocess
import sys

GPULAB = (sys.executable, "-m", "gpulab")


def result_of(name, *flags, env=None):
    """The result of one run, as its JSON."""
    command = [*GPULAB, "--run", str(name), *flags, "--json"]
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    )
    return with_ends(json.loads(done.stdout)["runs"][0])


_ESTIMATES = ("speedup", "ratio", "fraction", "rate", "gain")


def with_ends(found):
    """What gpulab writes as JSON, with the value of each ratio in its place: the ends of a speedup or
    a ratio are `low` and `high` beside it, those of another `gain_low`, `gain_high`.
    """
    if isinstance(found, list):
        return [with_ends(item) for item in found]
    if not isinstance(found, dict):
        return found
    flat = {key: with_ends(item) for key, item in found.items()}
    for key in _ESTIMATES:
        if key not in flat or isinstance(flat[key], float):
            continue
        prefix = "" if key in ("speedup", "ratio") else f"{key}_"
        estimate = flat[key] or {"value": None, "low": None, "high": None}
        flat |= {key: estimate["value"], f"{prefix}low": estimate["low"]}
        flat[f"{prefix}high"] = estimate["high"]
    return flat
