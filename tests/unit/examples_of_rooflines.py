"""Findings about what limits a step, and about its roofs, with values as they are given where each
is made.
"""

EXAMPLES = {
    "above_compute_roof": (
        {"memory": 0.5, "arithmetic": 1.2, "dtype": "fp32"},
        "memory 50%, fp32 arithmetic 120%: above the roof, so what is declared or the ceiling is "
        "wrong",
    ),
    "near_compute_roof": (
        {"arithmetic": 0.9, "dtype": "bf16"},
        "bf16 arithmetic 90%: fewer or cheaper operations make it faster",
    ),
    "above_memory_roof": (
        {"memory": 1.3},
        "memory 130%: above the roof, so what is declared or the ceiling is wrong",
    ),
    "near_memory_roof": (
        {"memory": 0.46, "as_fast_as": "copy"},
        "memory 46%, as fast as a copy moves its bytes: fewer bytes make it faster",
    ),
    "bytes_stay_in_cache": (
        {
            "memory": 2.5,
            "cache": 0.8,
            "arithmetic": 0.1,
            "dtype": "fp32",
            "may_move_fewer_bytes": True,
        },
        (
            "2.5x of what device memory can: its bytes stay in the cache, or it moves fewer than "
            "are declared, 80% of the last-level cache's roof"
        ),
    ),
    "few_bytes_in_memory": (
        {"memory": 0.9, "counted": 0.014},
        "the device counted only 1% of its bytes in memory: cached",
    ),
    "bytes_fit_cache": (
        {"memory": 0.7, "cache": 2.8, "nearer_cache": True},
        (
            "its bytes fit into the cache, and so may stay there, 280% of the last-level cache's "
            "roof, so a nearer one has them"
        ),
    ),
    "launches_take_the_time": (
        {"memory": 0.01, "operations": 4, "share": 0.8},
        (
            "starting its 4 operations takes 80% of its time, and no roof is near (memory 1%): "
            "fewer, larger operations make it faster"
        ),
    ),
    "device_waits_for_launches": (
        {"memory": 0.01, "share": 0.3},
        (
            "the device waits for the host 30% of the time, and no roof is near (memory 1%): "
            "fewer, larger operations make it faster"
        ),
    ),
    "ceilings_missing": (
        {"memory": 0.01, "arithmetic": None, "dtype": "fp16", "missing": "unsteady"},
        (
            "not every ceiling is known (memory 1%, fp16 arithmetic: no steady ceiling): measure "
            "again when the machine is quiet"
        ),
    ),
    "device_waits_for_host": (
        {"memory": 0.01, "share": 0.9, "operations": 3, "launching": 0.02},
        "the device waits for the host 90% of the time; starting 3 operations bare takes 2% "
        "(memory 1%)",
    ),
    "counted_near_memory_roof": (
        {"memory": 0.23, "sm": 0.8, "dram": 0.75, "ratio": 2.85},
        (
            "the device moves 75% of what its memory can, 2.9x of what is declared (memory 23%): "
            "fewer bytes make it faster"
        ),
    ),
    "pipe_is_busy": (
        {"arithmetic": 0.2, "dtype": "fp16", "sm": 0.9, "tensor": 0.7, "pipe": "tensor"},
        (
            "the tensor cores work 70% of the time (SMs busy 90%, tensor 70%), on more than is "
            "declared (fp16 arithmetic 20%): fewer or cheaper operations make it faster"
        ),
    ),
    "at_power_cap": (
        {
            "arithmetic": 0.55,
            "dtype": "fp32",
            "sm": 0.97,
            "tensor": 0.32,
            "fp16": 0.0,
            "power": 699.0,
            "limit": 700.0,
        },
        (
            "it draws all the power there is (SMs busy 97%, tensor 32%, 699 of 700 W), and no "
            "roof is near (fp32 arithmetic 55%): what takes less energy is faster"
        ),
    ),
    "too_little_in_flight": (
        {"memory": 0.03, "sm": 0.44, "occupancy": 0.02, "dram": 0.0},
        (
            "too little in flight: SMs busy 44%, occupancy 2%, DRAM 0%, and no roof is near "
            "(memory 3%): more, or larger, work at once"
        ),
    ),
    "warps_wait": (
        {"memory": 0.13, "sm": 0.99, "occupancy": 0.9, "dram": 0.37},
        (
            "the SMs are full of warps that wait: SMs busy 99%, occupancy 90%, DRAM 37%, and no "
            "roof is near (memory 13%): accesses that waste bandwidth, or atomics"
        ),
    ),
    "strided_accesses": (
        {"memory": 0.05, "share": 0.99},
        (
            "99% of the bytes of its operands are not gone through in their order in memory, and "
            "no roof is near (memory 5%): read and write contiguously"
        ),
    ),
    "page_faults_take_the_time": (
        {"memory": 0.2, "faults": 4096.0, "share": 0.6},
        (
            "4096 page faults a step take 60% of its time, and no roof is near (memory 20%): "
            "reuse memory instead of allocating it"
        ),
    ),
    "thread_is_preempted": (
        {"memory": 0.3, "share": 0.45},
        (
            "its thread does not run 45% of the time, and no roof is near (memory 30%): measure "
            "on a quiet machine"
        ),
    ),
    "unexplained": (
        {
            **{
                "memory": 0.13,
                "arithmetic": 0.35,
                "dtype": "fp32",
                "launching": 0.02,
                "preempted": 0.0,
                "waited": 0.1,
            },
            **{"outside": 0.05, "operation": "aten::erf", "share": 0.9},
        },
        (
            "no roof is near (memory 13%, fp32 arithmetic 35%), and nothing that was measured "
            "says why (launches 2%, preempted 0%, waiting 10%, outside of torch's operations 5%; "
            "aten::erf 90%)"
        ),
    ),
    "random_accesses": (
        {"memory": 0.02, "share": 0.97},
        (
            "operations that read or write at indices take 97% of the time, and no roof is near "
            "(memory 2%): sort the indices, or keep what they reach small enough for a cache"
        ),
    ),
    "thread_waits": (
        {"share": 0.99},
        (
            "its thread sleeps, or waits for another thread, a process or a device, 99% of the "
            "time: overlap that with work, or wait less"
        ),
    ),
    "interpreter_takes_the_time": (
        {"share": 0.97, "interpreted": 0.95},
        (
            "97% of what its thread runs is outside of torch's operations, and 95% Python's "
            "bytecode: one operation on a whole tensor instead of a loop"
        ),
    ),
    "outside_of_torch": (
        {"share": 0.99, "interpreted": 0.02},
        (
            "99% of what its thread runs is outside of torch's operations, and 2% Python's "
            "bytecode: the code of another library"
        ),
    ),
    "no_work_declared": (
        {"operation": "aten::mm", "share": 0.98},
        "it declares no work (bytes, flops) that a roof could limit; aten::mm takes 98% of its "
        "time",
    ),
    "link_and_near_compute_roof": (
        {"link": "host to device", "share": 0.2, "arithmetic": 0.9, "dtype": "fp32"},
        "20% of the host to device link, fp32 arithmetic 90%: fewer or cheaper operations make "
        "it faster",
    ),
    "above_link_roof": (
        {"link": "host to device", "share": 1.4},
        "140% of the host to device link: above the roof, so what is declared or the ceiling is "
        "wrong",
    ),
    "near_link_roof": (
        {"link": "device to host", "share": 0.9},
        "90% of the device to host link: fewer bytes make it faster",
    ),
    "far_from_link_roof": (
        {"link": "host to device", "share": 0.2},
        (
            "only 20% of the host to device link: copies that wait for other work, that are too "
            "small, or from pageable memory"
        ),
    ),
    "ceiling_cache_unreadable": (
        {"file": "c.json"},
        "c.json cannot be read: what it held of ceilings counts as not measured; delete it",
    ),
    "ceilings_failed": ({"message": "boom"}, "the ceilings could not be measured: boom"),
    "ceiling_failed": (
        {"ceiling": "cache read", "message": "boom"},
        "the ceiling cache read could not be measured: boom",
    ),
    "ceilings_not_used": (
        {"ceilings": ["cache read", "device memory triad"], "times": 1.5},
        (
            "not used as ceilings: cache read, device memory triad: their best is over 1.5x "
            "their median, on a machine that was disturbed"
        ),
    ),
    "flops_differ": (
        {"declared": 2000000.0, "counted": 1500000.0},
        "declares 2e+06 FLOPs a step, and torch counts 1.5e+06 in its products and convolutions",
    ),
    "moves_more_bytes": (
        {"ratio": 3.04},
        "moves 3.0x of the bytes that it declares, which are the least it must: by the device's "
        "own counters",
    ),
    "declares_more_bytes": (
        {"declared": 419430400, "operands": 52428800},
        "declares 400 MiB a step, and the operands of its operations are 50.0 MiB",
    ),
    "above_roof": (
        {
            **{
                "declared": 1.0e12,
                "unit": "FLOP",
                "time_s": 1.42e-3,
                "rate": 7.03e14,
                "roof": "matrix fp32",
            },
            **{"roof_rate": 1.454e11, "ratio": 4834.8, "allowed": 1.1},
        },
        (
            "declares 1.00 TFLOP in 1.42 ms: 703 TFLOP/s, 4,835x of matrix fp32 (145 GFLOP/s), "
            "and more than 1.1x is not possible"
        ),
    ),
    "phase_waits": (
        {"memory": 0.01, "phase": "data", "share": 0.57},
        "its data phase takes 57% of the time, and no roof is near (memory 1%): fix that first",
    ),
}
