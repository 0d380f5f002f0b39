"""Examples of what is said of checks, of grades, and of variants that ran alone."""

EXAMPLES = {
    "outputs_compared": (
        {"error": 3.1e-7, "allowed": 1e-4},
        "largest error 3.1e-07 (allowed 0.0001)",
    ),
    "timed_steps_checked": (
        {
            "count": 37,
            "error": 3.1e-7,
            "allowed": 1e-4,
            "late": 12,
            "state": 2,
            "alone_ratio": 1.1,
            "new_ratio": 1.0,
        },
        "37 blocks checked, largest error 3.1e-07 (allowed 0.0001), 12 with values that change "
        "between two steps, the state of 2 tensors as well",
    ),
    "inputs_compared": (
        {"inputs": 3, "allowed": 1e-4},
        "the output follows other values of 3 tensors",
    ),
    "steps_repeated": ({"count": 3}, "3 steps agree"),
    "null_answers_refused": ({"count": 4, "allowed": 1e-4}, "4 null answers fail as they should"),
    "work_counted": (
        {
            "items": 2.0,
            "baseline_items": 2.0,
            "operations": 1,
            "baseline_operations": 40,
            "flops": 1e9,
            "baseline_flops": 1e9,
            "declared_flops": 2e9,
        },
        "2 items; 1 operation, the baseline 40; 1.00 GFLOP counted, declared 2.00 G",
    ),
    "rate_below_roof": (
        {"count": 2, "ratio": 0.875, "roof": "device memory", "rate": 2.1e12, "unit": "B"},
        "2.10 TB/s, 88% of what was measured (device memory)",
    ),
    "nothing_left_running": ({"count": 6, "left_over_s": 0.0}, "6 looks, no work after a step"),
    "context_and_output_watched": (
        {"count": 1, "output_s": 3e-6, "step_s": 1.2e-3, "context": False},
        "reading the output takes 3.00 µs, a step 1.20 ms",
    ),
    "control_measured": ({"speedup": 1.001, "low": 0.99, "high": 1.01}, "1.001x (0.990 to 1.010)"),
    "processes_measured": (
        {"count": 8, "pinned": False, "correlation": 0.31},
        "8 processes, fresh entropy, correlation 0.31",
    ),
    "contention_measured": (
        {"share": 0.021, "faults": 0.2, "switches": 0.5},
        "off the CPU for 2.1%, 0.5 preemptions a block",
    ),
    "clocks_watched": ({"readings": 40, "capped": 3}, "no slowdown in 40 readings, power cap in 3"),
    "fewer_flops": (
        {"flops": 2.5e8, "baseline": 1e9},
        "2.5e+08 FLOP per item counted, 1e+09 of the baseline: less work, or another algorithm",
    ),
    "control_inconclusive": (
        {"speedup": 1.0, "low": 0.9, "high": 1.1},
        "the control is inconclusive: 0.900x to 1.10x",
    ),
    "measured_in_one_process": (
        {},
        "one process: another one, or another hour, may give another ratio",
    ),
    "few_processes": ({"count": 3, "needed": 8}, "3 processes: an interval needs 8"),
    "processes_correlated": (
        {"correlation": 0.8},
        "successive processes are alike (correlation 0.80): it drifts",
    ),
    "contention_of_threads": ({}, "measured with one thread only"),
    "clocks_of_cpu": ({}, "a CPU does not report what holds its clocks back"),
    "telemetry_off": ({}, "telemetry is off"),
    "check_not_recorded": ({}, "not recorded in this run file"),
    "check_not_made": ({}, "not made in this run"),
    "just_above_roof": (
        {"ratio": 1.08, "roof": "device memory"},
        "108% of what was measured (device memory): more than a step should reach",
    ),
    "checks_not_run": ({"checks": ["timed steps", "inputs"]}, "not checked: timed steps, inputs"),
    "failed_after": (
        {"count": 11, "unit": "processes"},
        "it failed after 11 processes; their pairs are kept",
    ),
    "variants_alone": (
        {"count": 8, "alone": 1.9, "interleaved": 2.0},
        "1.90x as the first of 8 processes, 2.00x among others",
    ),
    "variants_influence": (
        {"interleaved": 22.8, "alone": 1.004},
        "variants influence each other: 22.8x among the others, 1.004x where no other was built",
    ),
    "fails_alone": (
        {"message": "KeyError: 'x'"},
        "it fails where no other variant was built: KeyError: 'x'",
    ),
    "baseline_slowed": (
        {"before_s": 4e-5, "later_s": 1.4e-4, "ratio": 3.5},
        "variants influence each other: a step of the baseline takes 140 µs, and 40.0 µs before "
        "the others were built",
    ),
    "power_cap_alone": ({}, "alone each is held at the power cap; interleaved, they share it"),
    "differs_alone": ({}, "alone, its steps take another time than among the others"),
    "sustained_contradicts": (
        {"interleaved": 1.2, "sustained": 0.8},
        "1.20x when interleaved and 0.80x alone: it depends on what runs beside it",
    ),
}
"""Code to values and sentence."""
