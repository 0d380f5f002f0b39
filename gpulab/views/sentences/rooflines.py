"""What is said of a roofline: what limits a step and the evidence for it, how each ceiling was measured."""

from __future__ import annotations

from gpulab.views.sentences.words import Template, Values, Words, filled

_FEWER_BYTES = "fewer bytes make it faster"
_FEWER_OPERATIONS = "fewer or cheaper operations make it faster"
_ABOVE = "above the roof, so what is declared or the ceiling is wrong"
_MISSING = {"unsteady": "no steady ceiling", "unknown": "no ceiling known here"}


def _shares(values: Values) -> str:
    """How near the step came to each roof."""
    missing = _MISSING.get(str(values.get("missing")), "")
    names = {"memory": "memory", "cache": "cache", "arithmetic": f"{values.get('dtype')} arithmetic"}
    shares = []
    for key, name in names.items():
        if key in values:
            share = values[key]
            shares.append(f"{name} {share:.0%}" if isinstance(share, float) else f"{name}: {missing}")
    return ", ".join(shares)


def _bound(template: Template) -> Words:
    """A template that may name the `shares`, and whether it is as fast as a stream."""

    def sentence(values: Values) -> str:
        stream = values.get("as_fast_as")
        as_fast = f", as fast as a {stream} moves its bytes" if stream else ""
        return filled(template, {**values, "shares": _shares(values), "as_fast": as_fast})

    return Words(sentence)


def _cached(template: str) -> Words:
    """A template that may name what is known of the last-level cache's `roof`."""

    def sentence(values: Values) -> str:
        share = values.get("cache")
        nearer = ", so a nearer one has them" if values.get("nearer_cache") else ""
        roof = f", {share:.0%} of the last-level cache's roof{nearer}" if isinstance(share, float) else ""
        fewer = ", or it moves fewer than are declared" if values.get("may_move_fewer_bytes") else ""
        return filled(template, {**values, "roof": roof, "fewer": fewer})

    return Words(sentence)


def _link(template: str) -> Words:
    def sentence(values: Values) -> str:
        arithmetic = values.get("arithmetic")
        units = f", {values['dtype']} arithmetic {arithmetic:.0%}" if isinstance(arithmetic, float) else ""
        return filled(template, {**values, "units": units})

    return Words(sentence)


def _ceilings_missing(values: Values) -> str:
    again = ": measure again when the machine is quiet" if values.get("missing") == "unsteady" else ""
    return filled("not every ceiling is known ({shares}){again}", {**values, "again": again})


_STARTING = "starting its {operations:count operation|operations} takes {share:.0%} of its time"
_NO_ROOF_NEAR = "and no roof is near ({shares})"
_FEWER_LAUNCHES = "fewer, larger operations make it faster"
WORDS = {
    "above_compute_roof": _bound(f"{{shares}}: {_ABOVE}"),
    "near_compute_roof": _bound(f"{{shares}}: {_FEWER_OPERATIONS}"),
    "above_memory_roof": _bound(f"{{shares}}{{as_fast}}: {_ABOVE}"),
    "near_memory_roof": _bound(f"{{shares}}{{as_fast}}: {_FEWER_BYTES}"),
    "bytes_stay_in_cache": _cached("{memory:.1f}x of what device memory can: its bytes stay in the cache{fewer}{roof}"),
    "few_bytes_in_memory": _cached("the device counted only {counted:.0%} of its bytes in memory: cached{roof}"),
    "bytes_fit_cache": _cached("its bytes fit into the cache, and so may stay there{roof}"),
    "launches_take_the_time": _bound(f"{_STARTING}, {_NO_ROOF_NEAR}: {_FEWER_LAUNCHES}"),
    "launches_and_python_take_the_time": _bound(
        f"{_STARTING} bare, and several times that with checks and Python, {_NO_ROOF_NEAR}: {_FEWER_LAUNCHES}"
    ),
    "device_waits_for_launches": _bound(
        f"the device waits for the host {{share:.0%}} of the time, {_NO_ROOF_NEAR}: {_FEWER_LAUNCHES}"
    ),
    "phase_waits": _bound(f"its {{phase}} phase takes {{share:.0%}} of the time, {_NO_ROOF_NEAR}: fix that first"),
    "ceilings_missing": _bound(_ceilings_missing),
    "device_waits_for_host": _bound(
        "the device waits for the host {share:.0%} of the time, and not for launches ({shares})"
    ),
    "no_roof_near": _bound("no roof is near ({shares}): too little in flight, or accesses that waste bandwidth"),
    "link_and_near_compute_roof": _link(f"{{share:.0%}} of the {{link}} link{{units}}: {_FEWER_OPERATIONS}"),
    "above_link_roof": _link(f"{{share:.0%}} of the {{link}} link{{units}}: {_ABOVE}"),
    "near_link_roof": _link(f"{{share:.0%}} of the {{link}} link{{units}}: {_FEWER_BYTES}"),
    "far_from_link_roof": _link(
        "only {share:.0%} of the {link} link{units}: copies that wait for other work, that are too small, or from "
        "pageable memory"
    ),
    "ceiling_cache_unreadable": Words(
        "{file} cannot be read: what it held of ceilings counts as not measured; delete it"
    ),
    "ceilings_failed": Words("the ceilings could not be measured: {message}"),
    "ceiling_failed": Words("the ceiling {ceiling} could not be measured: {message}"),
    "ceilings_not_used": Words(
        "not used as ceilings: {ceilings}: their best is over {times:g}x their median, on a machine that was disturbed"
    ),
    "flops_differ": Words(
        "declares {declared:.4g} FLOPs a step, and torch counts {counted:.4g} in its products and convolutions",
        "declared FLOPs of a step, and what torch counts in its products and convolutions:",
        "{declared:.4g} and {counted:.4g}",
    ),
    "moves_more_bytes": Words(
        "moves {ratio:.1f}x of the bytes that it declares, which are the least it must: by the device's own counters",
        "more bytes moved than declared, which are the least they must, by the device's own counters:",
        "{ratio:.1f}x",
    ),
    "datasheet": Words("datasheet of {device}"),
    "memory_clock": Words("{mhz:.0f} MHz x {transfers} x {bits} bit"),
    "sm_clock": Words("{sms} SMs x {per_clock:g} {unit} x {mhz:.0f} MHz"),
    "arrays": Words("arrays of {bytes:bytes}"),
    "product": Words("product of {size}^3, random data"),
    "fma_chains": Words("{chains} chains of FMAs a thread, {blocks} blocks of {threads}"),
    "repeated_reads": Words("{passes} reads of {bytes:bytes} in one launch"),
    "additions": Words("additions of one element, {count} in a row"),
    "additions_on_device_clock": Words("additions of one element, {count} in a row, on the device's clock"),
    "graph_of_additions": Words("a graph of {count} additions"),
    "host_clock": Words("on the host's clock"),
    "pinned_for_one_copy": Words("page-locked for this one copy"),
    "matrix_product_units": Words("the matrix product's, by the same units"),
}
