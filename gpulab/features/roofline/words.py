"""What is said of a roofline: what limits a step and the evidence for it, how each ceiling was
measured.
"""

from __future__ import annotations

from gpulab.core.units import plural, rate
from gpulab.draw.templates import Template, Values, Words, filled

_FEWER_BYTES = "fewer bytes make it faster"
_FEWER_OPERATIONS = "fewer or cheaper operations make it faster"
_ABOVE = "above the roof, so what is declared or the ceiling is wrong"
_MISSING = {"unsteady": "no steady ceiling", "unknown": "no ceiling known here"}


def _shares(values: Values) -> str:
    """How near the step came to each roof."""
    missing = _MISSING.get(str(values.get("missing")), "")
    names = {
        "memory": "memory",
        "cache": "cache",
        "arithmetic": f"{values.get('dtype')} arithmetic",
    }
    shares = []
    for key, name in names.items():
        if key in values:
            share = values[key]
            shares.append(
                f"{name} {share:.0%}" if isinstance(share, float) else f"{name}: {missing}"
            )
    return ", ".join(shares)


_COUNTERS = {
    "sm": "SMs busy",
    "occupancy": "occupancy",
    "tensor": "tensor",
    "fp64": "FP64",
    "fp32": "FP32",
    "fp16": "FP16",
    "dram": "DRAM",
}
_LEAST_SHOWN = 0.02


def _counters(values: Values) -> str:
    """What the device counted, the pipes only where they did anything; with its power."""
    shares = {key: values.get(key) for key in _COUNTERS}
    parts = [
        f"{_COUNTERS[key]} {share:.0%}"
        for key, share in shares.items()
        if isinstance(share, float)
        and (share >= _LEAST_SHOWN or key in ("sm", "occupancy", "dram"))
    ]
    return ", ".join([*parts, *([_power(values)] if "power" in values else [])])


def _power(values: Values) -> str:
    power, limit = values.get("power"), values.get("limit")
    of_limit = f" of {limit:.0f}" if isinstance(limit, float) else ""
    return f"{power:.0f}{of_limit} W" if isinstance(power, float) else ""


def _host(values: Values) -> str:
    """What the host is known to have spent on something else than the work."""
    names = {
        "launching": "launches",
        "faulting": "page faults",
        "preempted": "preempted",
        "waited": "waiting",
        "outside": "outside of torch's operations",
    }
    shares = ((name, values.get(key)) for key, name in names.items())
    return ", ".join(f"{name} {share:.0%}" for name, share in shares if isinstance(share, float))


def _without_roofs(template: Template, values: Values) -> str:
    """Of a step that declares nothing no roof is said to be far."""
    return filled(template, values).replace(f", {_NO_ROOF_NEAR.format(shares='')}", "")


def _bound(template: Template) -> Words:
    """A template that may name the `shares`, what was `counted`, and whether it is as fast as a
    stream, or `capped`.
    """

    def sentence(values: Values) -> str:
        stream = values.get("as_fast_as")
        as_fast = f", as fast as a {stream} moves its bytes" if stream else ""
        capped = f", at the power cap ({_power(values)})" if "power" in values else ""
        known = {
            "shares": _shares(values),
            "counters": _counters(values),
            "as_fast": as_fast,
            "capped": capped,
        }
        return _without_roofs(template, {**values, **known})

    return Words(sentence)


def _cached(template: str) -> Words:
    """A template that may name what is known of the last-level cache's `roof`."""

    def sentence(values: Values) -> str:
        share = values.get("cache")
        nearer = ", so a nearer one has them" if values.get("nearer_cache") else ""
        roof = (
            f", {share:.0%} of the last-level cache's roof{nearer}"
            if isinstance(share, float)
            else ""
        )
        fewer = (
            ", or it moves fewer than are declared" if values.get("may_move_fewer_bytes") else ""
        )
        return filled(template, {**values, "roof": roof, "fewer": fewer})

    return Words(sentence)


def _link(template: str) -> Words:
    def sentence(values: Values) -> str:
        arithmetic = values.get("arithmetic")
        units = (
            f", {values['dtype']} arithmetic {arithmetic:.0%}"
            if isinstance(arithmetic, float)
            else ""
        )
        return filled(template, {**values, "units": units})

    return Words(sentence)


def _ceilings_missing(values: Values) -> str:
    again = (
        ": measure again when the machine is quiet" if values.get("missing") == "unsteady" else ""
    )
    return filled("not every ceiling is known ({shares}){again}", {**values, "again": again})


def _above_roof(values: Values) -> str:
    unit = values["unit"]
    rates = {key: f"{rate(values[key])}{unit}/s" for key in ("rate", "roof_rate")}
    return filled(
        "declares {amount}{unit} in {time_s:seconds}: {rate}, {ratio:times} of {roof} "
        "({roof_rate}), and more than {allowed:.1f}x is not possible",
        {**values, **rates, "amount": rate(values["declared"])},
    )


_FEWER_LAUNCHES = "fewer, larger operations make it faster"
_NO_ROOF_NEAR = "and no roof is near ({shares})"
_PIPES = {
    "tensor": "tensor cores",
    "fp64": "FP64 units",
    "fp32": "FP32 units",
    "fp16": "FP16 units",
}


def _launches(values: Values) -> str:
    operations = values.get("operations")
    started = plural(operations, "operation") if isinstance(operations, int) else "operations"
    return _without_roofs(
        "starting its {started} takes {share:.0%} of its time, "
        + f"{_NO_ROOF_NEAR}: {_FEWER_LAUNCHES}",
        {**values, "started": started, "shares": _shares(values)},
    )


def _pipe(values: Values) -> str:
    pipe = _PIPES.get(str(values.get("pipe")), "")
    share = values.get(str(values.get("pipe")))
    busy = f"{share:.0%}" if isinstance(share, float) else "most"
    rest = (
        f"the {pipe} work {busy} of the time ({_counters(values)}), on more than is declared "
        f"({_shares(values)})"
    )
    return f"{rest}: {_FEWER_OPERATIONS}"


def _counted_memory(values: Values) -> str:
    ratio, share = values.get("ratio"), values.get("dram")
    of_declared = f", {ratio:.1f}x of what is declared" if isinstance(ratio, float) else ""
    roof = f"{share:.0%}" if isinstance(share, float) else "most"
    return (
        f"the device moves {roof} of what its memory can{of_declared} ({_shares(values)}): "
        f"{_FEWER_BYTES}"
    )


def _unexplained(values: Values) -> str:
    operation, share = values.get("operation"), values.get("share")
    longest = f"{operation} {share:.0%}" if isinstance(share, float) else ""
    evidence = "; ".join(filter(None, (_counters(values), _host(values), longest)))
    seen = f" ({evidence})" if evidence else ""
    return f"no roof is near ({_shares(values)}), and nothing that was measured says why{seen}"


def _waits_for_host(values: Values) -> str:
    operations, launching, shares = (
        values.get("operations"),
        values.get("launching"),
        _shares(values),
    )
    bare = ""
    if isinstance(operations, int) and isinstance(launching, float):
        bare = f"; starting {plural(operations, 'operation')} bare takes {launching:.0%}"
    return filled(
        "the device waits for the host {share:.0%} of the time{bare}{shares}",
        {**values, "bare": bare, "shares": f" ({shares})" if shares else ""},
    )


def _outside_of_torch(values: Values) -> str:
    interpreted = values.get("interpreted")
    python = f", and {interpreted:.0%} Python's bytecode" if isinstance(interpreted, float) else ""
    cause = ": the code of another library" if python else ""
    sentence = "{share:.0%} of what its thread runs is outside of torch's operations{python}{cause}"
    return filled(sentence, {**values, "python": python, "cause": cause})


WORDS = {
    "above_compute_roof": _bound(f"{{shares}}: {_ABOVE}"),
    "near_compute_roof": _bound(f"{{shares}}{{capped}}: {_FEWER_OPERATIONS}"),
    "above_memory_roof": _bound(f"{{shares}}{{as_fast}}: {_ABOVE}"),
    "near_memory_roof": _bound(f"{{shares}}{{as_fast}}{{capped}}: {_FEWER_BYTES}"),
    "bytes_stay_in_cache": _cached(
        "{memory:.1f}x of what device memory can: its bytes stay in the cache{fewer}{roof}"
    ),
    "few_bytes_in_memory": _cached(
        "the device counted only {counted:.0%} of its bytes in memory: cached{roof}"
    ),
    "bytes_fit_cache": _cached("its bytes fit into the cache, and so may stay there{roof}"),
    "launches_take_the_time": Words(_launches),
    "device_waits_for_launches": _bound(
        f"the device waits for the host {{share:.0%}} of the time, {_NO_ROOF_NEAR}: "
        f"{_FEWER_LAUNCHES}"
    ),
    "phase_waits": _bound(
        f"its {{phase}} phase takes {{share:.0%}} of the time, {_NO_ROOF_NEAR}: fix that first"
    ),
    "ceilings_missing": _bound(_ceilings_missing),
    "device_waits_for_host": Words(_waits_for_host),
    "counted_near_memory_roof": Words(_counted_memory),
    "pipe_is_busy": Words(_pipe),
    "at_power_cap": _bound(
        "it draws all the power there is ({counters}), and no roof is near ({shares}): what "
        "takes less energy is faster"
    ),
    "too_little_in_flight": _bound(
        "too little in flight: {counters}, and no roof is near ({shares}): more, or larger, work "
        "at once"
    ),
    "warps_wait": _bound(
        "the SMs are full of warps that wait: {counters}, and no roof is near ({shares}): "
        "accesses that waste bandwidth, or atomics"
    ),
    "strided_accesses": _bound(
        "{share:.0%} of the bytes of its operands are not gone through in their order in memory, "
        "and no roof is near ({shares}): read and write contiguously"
    ),
    "page_faults_take_the_time": _bound(
        "{faults:.0f} page faults a step take {share:.0%} of its time, and no roof is near "
        "({shares}): reuse memory instead of allocating it"
    ),
    "thread_waits": Words(
        "its thread sleeps, or waits for another thread, a process or a device, {share:.0%} of "
        "the time: overlap that with work, or wait less"
    ),
    "interpreter_takes_the_time": Words(
        "{share:.0%} of what its thread runs is outside of torch's operations, and "
        "{interpreted:.0%} Python's bytecode: one operation on a whole tensor instead of a loop"
    ),
    "outside_of_torch": Words(_outside_of_torch),
    "random_accesses": _bound(
        "operations that read or write at indices take {share:.0%} of the time, and no roof is "
        "near ({shares}): sort the indices, or keep what they reach small enough for a cache"
    ),
    "no_work_declared": Words(
        "it declares no work (bytes, flops) that a roof could limit; {operation} takes "
        "{share:.0%} of its time"
    ),
    "thread_is_preempted": _bound(
        "its thread does not run {share:.0%} of the time, and no roof is near ({shares}): "
        "measure on a quiet machine"
    ),
    "unexplained": Words(_unexplained),
    "link_and_near_compute_roof": _link(
        f"{{share:.0%}} of the {{link}} link{{units}}: {_FEWER_OPERATIONS}"
    ),
    "above_link_roof": _link(f"{{share:.0%}} of the {{link}} link{{units}}: {_ABOVE}"),
    "near_link_roof": _link(f"{{share:.0%}} of the {{link}} link{{units}}: {_FEWER_BYTES}"),
    "far_from_link_roof": _link(
        "only {share:.0%} of the {link} link{units}: copies that wait for other work, that are "
        "too small, or from pageable memory"
    ),
    "ceiling_cache_unreadable": Words(
        "{file} cannot be read: what it held of ceilings counts as not measured; delete it"
    ),
    "ceilings_failed": Words("the ceilings could not be measured: {message}"),
    "ceiling_failed": Words("the ceiling {ceiling} could not be measured: {message}"),
    "ceilings_not_used": Words(
        "not used as ceilings: {ceilings}: their best is over {times:g}x their median, on a "
        "machine that was disturbed"
    ),
    "flops_differ": Words(
        "declares {declared:.4g} FLOPs a step, and torch counts {counted:.4g} in its products "
        "and convolutions",
        "declared FLOPs of a step, and what torch counts in its products and convolutions:",
        "{declared:.4g} and {counted:.4g}",
    ),
    "moves_more_bytes": Words(
        "moves {ratio:.1f}x of the bytes that it declares, which are the least it must: by the "
        "device's own counters",
        "more bytes moved than declared, which are the least they must, by the device's own "
        "counters:",
        "{ratio:.1f}x",
    ),
    "declares_more_bytes": Words(
        "declares {declared:bytes} a step, and the operands of its operations are {operands:bytes}",
        "declared bytes of a step, and those of the operands of its operations:",
        "{declared:bytes} and {operands:bytes}",
    ),
    "above_roof": Words(_above_roof),
    "datasheet": Words("datasheet of {device}"),
    "memory_clock": Words("{mhz:.0f} MHz x {transfers} x {bits} bit"),
    "sm_clock": Words("{sms} SMs x {per_clock:g} {unit} x {mhz:.0f} MHz"),
    "arrays": Words("arrays of {bytes:bytes}"),
    "product": Words("product of {size}^3, random data"),
    "fma_chains": Words("{chains} chains of FMAs a thread, {blocks} blocks of {threads}"),
    "repeated_reads": Words("{passes} reads of {bytes:bytes} in one launch"),
    "first_touches": Words("first touches of {pages} pages, one by one"),
    "additions": Words("additions of one element, {count} in a row"),
    "additions_on_device_clock": Words(
        "additions of one element, {count} in a row, on the device's clock"
    ),
    "graph_of_additions": Words("a graph of {count} additions"),
    "host_clock": Words("on the host's clock"),
    "pinned_for_one_copy": Words("page-locked for this one copy"),
    "matrix_product_units": Words("the matrix product's, by the same units"),
}
