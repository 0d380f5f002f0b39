"""A scenario that puts its own functions in the place of the lab's earns no verdict, and the run
says which.
"""

from faults import HEAD, VARIANT

CLOCK = """
from gpulab.engine.measure import clock
counted = clock.perf_counter_ns
clock.perf_counter_ns = lambda: counted() // (5 if counts["bad"] else 1)
"""
CHECK = """
from gpulab.engine.build import tensors
tensors.agree.__code__ = (lambda output, reference, *, tolerance=None, dtypes=(): Agreement(True, 0.0)).__code__
"""
REPLACED = ["gpulab.engine.build.tensors.agree", "gpulab.engine.measure.clock.perf_counter_ns"]


def test_a_run_of_another_clock_and_check_is_invalid(lab):
    variant = VARIANT.format(name="bad", step="pass", build="pass")
    finished = lab.run(lab.write("replaced.py", HEAD + variant + CLOCK + CHECK), "--smoke")
    assert finished.code == 7
    assert finished.run["reason"]["code"] == "lab_functions_replaced"
    assert finished.run["reason"]["values"] == {"count": len(REPLACED), "names": REPLACED}
    assert all(name in finished.stderr for name in REPLACED)
    # by the session's own clock nothing is left to compare
    assert finished.verdict("bad") in ("invalid", None)
    assert all(comparison["speedup"] is None for comparison in finished.run["comparisons"])
