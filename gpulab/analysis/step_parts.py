"""Step goodput: the parts of a step as it runs without the profiler, from a recording that the profiler made longer.

goodput = useful seconds / seconds of the step. On a device kernels and copies take as long under the profiler as
without it: their seconds are the recording's, the step's are the measurement's, and what is idle is what is left. On a
CPU the recorded operations hold the time that recording them takes: it is subtracted where it fell.
"""

from __future__ import annotations

from gpulab.protocol.partition import BUSY, USEFUL, Partition

OUTSIDE, HALF_INSIDE = 0.0, 0.5
"""Which part of what recording an operation takes falls inside of it: the profiler reads its clock last as an operation
begins, and first as it ends.
"""
_MUCH = 0.05


def busy_s(partition: Partition) -> float:
    """Seconds of the window in which the device worked."""
    return sum(partition.seconds.get(category, 0.0) for category in BUSY)


def parts_on_device(partition: Partition, steps: int, step_s: float) -> dict[str, float]:
    """Seconds of a step of `step_s` by category; they sum to it.

    What is busy keeps its recorded seconds, the more useful first where the step is too short for all of it. What is
    idle is scaled to the rest, but never made longer: what no recording explains is "other".
    """
    parts = {category: seconds / steps for category, seconds in partition.seconds.items()}
    rest_s = step_s
    for category in BUSY:
        if category in parts:
            parts[category] = min(parts[category], rest_s)
            rest_s -= parts[category]
    idle = [category for category in parts if category not in BUSY]
    idle_s = sum(parts[category] for category in idle)
    scale = min(1.0, rest_s / idle_s) if idle_s else 0.0
    for category in idle:
        parts[category] *= scale
    unexplained_s = max(0.0, rest_s - idle_s * scale)
    return {**parts, "other": parts.get("other", 0.0) + unexplained_s}


def parts_on_cpu(
    partition: Partition, steps: int, plain_s: float, step_s: float, inside: float = OUTSIDE
) -> dict[str, float]:
    """Seconds of a step of `step_s` by category; they sum to it.

    What the window is longer than steps of `plain_s`, in the same process, is what others took of it, which the step
    in the median does not have, and beyond that what recording took. This is subtracted from the categories by where
    operations begin, `inside` of it from their own. Where that is not known, by their seconds, which leaves the shares
    of the window. The rest is scaled to the step.
    """
    recorded = {category: max(0.0, seconds) for category, seconds in partition.seconds.items()}
    overhead_s = max(0.0, partition.window_s - plain_s * steps)
    if partition.around:
        taken_s = taken_by_others_s(partition, steps, plain_s)
        recorded["preempted"] = recorded.get("preempted", 0.0) - taken_s
        for category in recorded:
            share = (1 - inside) * partition.around.get(category, 0.0) + inside * partition.within.get(category, 0.0)
            recorded[category] = max(0.0, recorded[category] - (overhead_s - taken_s) * share)
    total_s = sum(recorded.values())
    if not total_s:
        return {**dict.fromkeys(recorded, 0.0), "other": step_s}
    return {category: seconds / total_s * step_s for category, seconds in recorded.items()}


def taken_by_others_s(partition: Partition, steps: int, plain_s: float) -> float:
    """Of a CPU's window, what was off the CPU beyond what the same steps are without the profiler."""
    excess_s = max(0.0, partition.window_s - plain_s * steps)
    return min(excess_s, max(0.0, partition.seconds.get("preempted", 0.0)))


def is_disturbed(partition: Partition, steps: int, plain_s: float) -> bool:
    """Whether others took much of a CPU's window, and not of the same steps before it: then its parts are guesses."""
    preempted_s = partition.seconds.get("preempted", 0.0)
    excess_s = partition.window_s - plain_s * steps
    return preempted_s > _MUCH * partition.window_s and excess_s > preempted_s / 2


def share_without_overhead(partition: Partition, steps: int, plain_s: float) -> tuple[float, float]:
    """The least and the most that the useful share of a CPU can be, wherever what recording took fell."""
    useful_s, whole_s = partition.seconds.get(USEFUL, 0.0) / steps, partition.window_s / steps
    plain_s = min(plain_s, whole_s)
    if not plain_s:
        return 0.0, 1.0
    return max(0.0, useful_s - (whole_s - plain_s)) / plain_s, min(useful_s, plain_s) / plain_s
