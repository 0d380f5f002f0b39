"""What differs between kernels: the most telling first, nothing where they are the same, nothing of
what is unknown.
"""

from gpulab.core.payloads import KernelCode
from gpulab.features.kernels.differences import changes


def kernel(registers=32, threads=256, **figures):
    """`instructions` as keywords of their own would be no figures: give them as a dict."""
    usual = {
        "name": "k",
        "arch": "sm_90",
        "registers": registers,
        "threads": threads,
        "digest": "0",
        "occupancy": 1.0,
    }
    return KernelCode(**{**usual, **figures})


def code(**instructions):
    return kernel(instructions={"all": sum(instructions.values()), **instructions})


def found(before, after):
    """(what, before, after) of each change."""
    listed = [each if isinstance(each, list) else [each] for each in (before, after)]
    return [(change.what, change.before, change.after) for change in changes(*listed)]


def test_the_same_code_launched_alike_differs_in_nothing():
    assert found(code(fma=4), code(fma=4)) == []
    assert found(kernel(), kernel(name="other", arch="sm_90")) == []


def test_the_same_counts_with_other_operands_are_a_change_of_all():
    assert found(code(fma=4), kernel(digest="1", instructions={"all": 4, "fma": 4})) == [
        ("all", 4, 4)
    ]
    assert found(code(), kernel(digest="1", instructions={"all": 9})) == [("all", 0, 9)]


def test_what_tells_most_comes_first():
    before = kernel(
        instructions={"load_32": 4, "branch": 1, "fma": 9, "divergent_branch": 2, "unknown": 1},
        bank_conflicts=8,
        load_use=0.125,
        store_use=0.5,
    )
    after = kernel(
        40,
        128,
        instructions={"load_128": 1, "fma": 8, "wgmma": 2, "loop": 1},
        spill_bytes=64,
        shared_bytes=1024,
        load_use=1.0,
        store_use=0.25,
        occupancy=0.5,
    )
    assert found([before], [after, after]) == [
        ("kernels", 1, 2),
        ("wgmma", 0, 4),
        ("spill_bytes", 0, 64),
        ("bank_conflicts", 8, 1),
        ("load_use", 0.125, 1.0),
        ("store_use", 0.5, 0.25),
        ("divergent_branch", 2, 0),
        ("loop", 0, 2),
        ("shared_bytes", 0, 1024),
        ("threads", 256, 128),
        ("load_128", 0, 2),
        ("load_32", 4, 0),
        ("branch", 1, 0),
        ("fma", 9, 16),
        ("registers", 32, 40),
        ("occupancy", 1.0, 0.5),
    ]


def test_of_several_kernels_instructions_are_added_and_the_worst_figure_counts():
    before = [
        kernel(16, 64, spill_bytes=8, load_use=1.0, occupancy=0.75, instructions={"fma": 1}),
        kernel(64, 128, load_use=0.5, occupancy=0.5, bank_conflicts=2, instructions={"fma": 2}),
    ]
    after = [
        kernel(32, 256, load_use=0.25, bank_conflicts=4, occupancy=0.625, instructions={"fma": 4})
    ]
    assert found(before, after) == [
        ("kernels", 2, 1),
        ("spill_bytes", 8, 0),
        ("bank_conflicts", 2, 4),
        ("load_use", 0.5, 0.25),
        ("threads", 128, 256),
        ("fma", 3, 4),
        ("registers", 64, 32),
        ("occupancy", 0.5, 0.625),
    ]
