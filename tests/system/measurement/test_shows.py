"""Scenarios that show something else than a speedup: first steps, clocks, memory. Real runs on the
CPU.
"""

import pytest

from gpulab.core.events import Checked
from gpulab.core.statuses import Status

MIB = 2**20
CURVE = """
    '''Curve: the first step sets something up.'''
    import time
    import torch
    from gpulab import Scenario, Work
    scenario = Scenario("t", shows="curve")

    @scenario.variant
    def lazy(lab):
        '''Sets up in its first step.'''
        return _work(lab, ready=False)

    @scenario.variant
    def eager(lab):
        '''Sets up in the build.'''
        return _work(lab, ready=True)

    def _work(lab, ready):
        data, made = torch.rand(1000), []
        if ready:
            made.append(_table())

        def step():
            if not made:
                made.append(_table())
            return data * made[0]

        return Work(step, inputs=data)

    def _table():
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            pass
        return 2.0
"""
CLOCKS = """
    '''Clocks: a step that is over when its result is there.'''
    from concurrent.futures import ThreadPoolExecutor
    import torch
    from gpulab import Scenario, Work
    scenario = Scenario("t", shows="clocks")

    @scenario.variant
    def waits(lab):
        '''Done when it returns.'''
        a = torch.rand(400, 400)
        return Work(lambda: a @ a, inputs=a)

    @scenario.variant(against=None)
    def returns(lab):
        '''Done later.'''
        a, pool = torch.rand(400, 400), ThreadPoolExecutor(1)
        yield Work(lambda: pool.submit(torch.mm, a, a), inputs=a)
        pool.shutdown()
"""
MEMORY = """
    '''Memory: what is held, and what a step needs besides.'''
    import torch
    from gpulab import MiB, Scenario, Work
    scenario = Scenario("t", shows="memory")

    @scenario.variant
    def in_one_piece(lab):
        '''8 MiB held, 16 MiB more in a step.'''
        data = torch.rand(2 * MiB)
        return Work(lambda: (data * 2).add(1).sum(), inputs=data)

    @scenario.variant
    def in_pieces(lab):
        '''8 MiB held, a fourth at a time.'''
        data = torch.rand(2 * MiB)
        return Work(lambda: torch.stack([(part * 2).add(1).sum() for part in data.chunk(4)]).sum(), inputs=data)
"""


@pytest.mark.slow
def test_a_curve_has_the_first_steps_of_fresh_processes(module_lab):
    finished = module_lab.run(module_lab.write("curve.py", CURVE), time_s="6")
    assert finished.code == 0, finished.stderr
    assert finished.run["shows"] == "curve"
    assert finished.run["comparisons"] == []
    lazy, eager = (finished.variant(name)["first_steps"] for name in ("lazy", "eager"))
    assert min(lazy["processes"], eager["processes"]) >= 3
    assert lazy["steps_s"][0]["value"] > 0.09 > 10 * lazy["steps_s"][1]["value"]
    assert lazy["settled_after"] >= 1
    assert eager["steps_s"][0]["value"] < 0.09 < eager["build_s"]["value"]
    assert finished.state.variants["eager"].last(Checked).ok, "outputs are compared all the same"


def test_clocks_stand_side_by_side_and_nothing_is_compared(module_lab):
    finished = module_lab.run(module_lab.write("clocks.py", CLOCKS), "--smoke")
    assert finished.code == 0, finished.stderr
    assert finished.run["comparisons"] == []
    clocks = finished.variant("waits")["clocks_s"]
    assert set(clocks) == {"wall", "return", "each_step"}
    later = finished.variant("returns")
    assert later["status"] == Status.OK, later["reason"]
    assert later["clocks_s"]["return"] < later["clocks_s"]["each_step"]
    assert later["clocks_s"]["return"] < clocks["return"]


@pytest.mark.slow
def test_memory_is_what_a_variant_alone_holds_and_needs(module_lab):
    finished = module_lab.run(module_lab.write("memory.py", MEMORY), "--profile", "on", time_s="1")
    whole, parts = (finished.variant(name)["memory"] for name in ("in_one_piece", "in_pieces"))
    assert 8 * MIB <= whole["held_bytes"] < 8.5 * MIB
    assert 24 * MIB <= whole["peak_bytes"] < 24.5 * MIB
    assert 12 * MIB <= parts["peak_bytes"] < 12.5 * MIB
    assert whole["reserved_bytes"] is None, "on a CPU torch reserves nothing"
