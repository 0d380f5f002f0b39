"""Examples of what is said of checks, of grades, and of variants that ran alone."""

EXAMPLES = {
    "outputs_compared": (
        {"error": 3.1e-7, "allowed": 1e-4},
        "largest error 3.1e-07 (allowed 0.0001)",
    ),
    "timed_steps_checked": (
        {"count": 37, "error": 3.1e-7, "allowed": 1e-4, "one_late_element_changed": 12},
        "37 blocks checked, largest error 3.1e-07 (allowed 0.0001), one late element changed 12",
    ),
    "inputs_compared": ({"count": 3}, "3 tensors compared"),
    "null_answers_refused": (
        {"count": 4, "kinds": ["zeros", "mean"]},
        "4 wrong answers refused, kinds zeros, mean",
    ),
    "steps_repeated": ({"count": 1, "error": None}, "1 repetition agrees, equal"),
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
    "rate_below_roof": ({"count": 2, "share": 0.875}, "2 roofs compared, share 0.875"),
    "nothing_left_running": ({"count": 1}, "1 look"),
    "context_and_output_watched": ({"count": 20}, "20 looks"),
    "timer_bracketed": ({"count": 16}, "16 stretches timed from outside"),
    "outputs_compared_outside": (
        {"count": 8, "error": 0.0, "allowed": 1e-4},
        "8 outputs compared, largest error 0 (allowed 0.0001)",
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
    "control_inconclusive": (
        {"speedup": 1.0, "low": 0.9, "high": 1.1},
        "the control is inconclusive: 0.900x to 1.10x",
    ),
    "measured_in_one_process": ({}, "one process: another one, or another hour, may give another ratio"),
    "few_processes": ({"count": 3, "needed": 8}, "3 processes: an interval needs 8"),
    "processes_correlated": (
        {"correlation": 0.8},
        "successive processes are alike (correlation 0.80): it drifts",
    ),
    "contention_of_threads": ({}, "measured with one thread only"),
    "clocks_of_cpu": ({}, "a CPU does not report what holds its clocks back"),
    "telemetry_off": ({}, "telemetry is off"),
    "check_not_recorded": ({}, "not recorded in this run file"),
    "check_ended_before": ({}, "the run ended before it"),
    "checks_not_run": ({"checks": ["timed steps", "inputs"]}, "not checked: timed steps, inputs"),
    "failed_after": ({"count": 11, "unit": "processes"}, "it failed after 11 processes; their pairs are kept"),
    "power_cap_alone": ({}, "alone each is held at the power cap; interleaved, they share it"),
    "differs_alone": ({}, "alone, its steps take another time than among the others"),
    "sustained_contradicts": (
        {"interleaved": 1.2, "sustained": 0.8},
        "1.20x when interleaved and 0.80x alone: it depends on what runs beside it",
    ),
}
"""Code to values and sentence."""
