"""Runs of scenarios, and what each has to say of its variants."""

import json

from gpulab.cli import main
from gpulab.report.sentences import declarations

NOISY = {"control", "processes", "contention", "clocks"}
"""Checks of the machine."""
HARMLESS = {
    "lower_precision",
    "near_to_float64",
    "output_of_another_kind",
    "outputs_cut_differently",
    "outside_earlier_runs",
    "ceilings_not_used",
    "baseline_changed",
    "warm_up_drifts",
    *(code for code, declared in declarations().items() if declared.check in NOISY),
}
"""Findings of a variant, or of the machine, that accuse nobody."""


def judged(folder, path, *more, whole=True, profile=False, default=False):
    """What a run of a file in a folder, which is the current one, has to say of each variant but
    the first.

    `default`: as long as a run is by default.
    """
    declares_work = any(work in path.read_text() for work in ("flops=", "bytes="))
    size = ["--time", "1" if declares_work else "0.5"]  # from a second on, roofs are measured too
    if default:
        size = []
    elif not (whole or declares_work):
        size = ["--smoke"]  # the checks are those of any run, in one process
    options = ["--device", "cpu", *size, "--telemetry", "off", "--json", "result.json", *more]
    options += [] if profile else ["--profile", "off"]
    main(["--run", str(path), *options])
    run = json.loads((folder / "result.json").read_text())["runs"][0]
    return {variant["name"]: Result(run, variant) for variant in run["variants"][1:]}


class Result:
    """One variant of a run, as its JSON has it."""

    def __init__(self, run, variant):
        self.run, self.variant = run, variant
        self.comparison = next(
            (entry for entry in run["comparisons"] if entry["variant"] == variant["name"]), {}
        )
        self.checks = (self.comparison.get("trust") or {}).get("checks", [])

    @property
    def caught_by(self):
        """What refuses it: checks that failed, and the codes of other reasons."""
        failed = {check["kind"] for check in self.checks if check["state"] == "failed"} - NOISY
        if self.variant["status"] in ("wrong", "invalid"):
            failed.add(self.variant["reason"]["code"])
        of_run = [*self.run["findings"], *filter(None, [self.run["reason"]])]
        return failed | ({finding["code"] for finding in of_run} & {"baseline_slowed"})

    @property
    def said(self):
        """Codes of what is said of it, or of the whole run."""
        doubts = [
            check["result"]
            for check in self.checks
            if check["state"] == "doubtful" and check["kind"] not in NOISY
        ]
        findings = [*self.run["findings"], *self.run["explanations"], *doubts]
        return {
            finding["code"]
            for finding in findings
            if finding["variant"] in (self.variant["name"], None)
        }

    @property
    def speedup(self):
        before, after = (variant["time_s"] for variant in (self.run["variants"][0], self.variant))
        return before["value"] / after["value"] if before and after else None

    def __repr__(self):
        name, verdict = self.variant["name"], self.comparison.get("verdict")
        return f"{name}: caught by {self.caught_by}, said {self.said}, {verdict} {self.speedup}"

    def is_accused_of_nothing(self):
        assert self.caught_by == set(), self
        assert self.said <= HARMLESS, self
        assert self.variant["status"] == "ok", self
        assert self.variant["unchecked"] is None, self
