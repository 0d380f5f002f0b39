"""Several scenarios in one command: one view, failures on the way, and one table at its end."""

import json

GOOD = """
    \"\"\"Good: x.\"\"\"
    import torch
    from gpulab import Scenario, Work
    scenario = Scenario("mine", claim="a lot faster")

    @scenario.variant
    def twice(lab):
        x = torch.rand(100_000)
        return Work(lambda: x + x, inputs=x)

    @scenario.variant(claim="as fast")
    def doubled(lab):
        x = torch.rand(100_000)
        return Work(lambda: x * 2, inputs=x)
"""
BAD = GOOD.replace("x * 2", "x[100_000:].item()").replace("Good", "Bad")
ODD = "from gpulab import Scenario\nscenario = Scenario()\n"


def test_a_library_goes_on_past_failures_and_ends_with_a_table(lab):
    folder = lab.folder / "lessons"
    folder.mkdir()
    for name, text in (("bad", BAD), ("good", GOOD), ("odd", ODD)):
        lab.write(f"lessons/{name}.py", text)
    done = lab.call("--run", folder, "--device", "cpu", "--quick", "--json", "all.json")
    assert done.code == 3
    found = json.loads((lab.folder / "all.json").read_text())["runs"]
    assert {run["scenario"]: run["outcome"] for run in found} == {"bad": "failed", "good": "measured", "odd": "failed"}
    table = " ".join(done.stdout.split())
    assert "speedup 99 % interval verdict goodput" in table
    assert "good a lot faster" in table  # the lesson, and what it claims
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("  doubled")]
    assert "er*" in row or "same*" in row or "inconclusive*" in row  # every row of such a run says so
    assert "* a quick run" in done.stdout
    assert "as fast" in table
    good = next(run for run in found if run["scenario"] == "good")
    before, after = (one["goodput"] for one in good["variants"])
    shares = (f"{one['goodput']:.0%}{'?' if one['why'] else ''}" for one in (before, after))
    assert " > ".join(shares) in table
    assert "99 % interval" in done.stdout
    assert "epochs," not in done.stdout  # the full results are in the run files
    assert "3 of 3  good: measured*" in done.stderr
    assert good["quick"]


TOGETHER = """
    \"\"\"Fixes: x.\"\"\"
    import time
    from gpulab import Scenario, Work
    import torch
    scenario = Scenario("mine")

    def _work(*waits_ms):
        x = torch.ones(4)
        def step():
            for wait in waits_ms:
                time.sleep(wait * 1e-3)
            return x + 1
        return Work(step, inputs=x)

    @scenario.variant
    def naive(lab):
        return _work(1, 1)

    @scenario.variant
    def first(lab):
        return _work(1, 0)

    @scenario.variant
    def second(lab):
        return _work(0, 1)

    @scenario.variant
    def all_together(lab):
        return _work(0.25, 0.25)
"""


def test_what_fixes_promise_alone_stands_beside_what_they_give_together(lab):
    done = lab.run(lab.write("fixes.py", TOGETHER), "--profile", "off")
    assert done.code == 0, done.stderr
    (told,) = [line for line in done.stderr.splitlines() if line.startswith("alone the fixes multiply to")]
    by_name = {one["variant"]: one["speedup"] for one in done.run["comparisons"]}
    assert f"{by_name['first'] * by_name['second']:.2f}x" in told
    assert f"together they give {by_name['all_together']:.2f}x" in told
