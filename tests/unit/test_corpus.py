"""The report of every recorded run equals the one that an earlier version made of it, but for what was renamed.

The run files are of version 1: sentences in them stay what they were. Sentences that the earlier version derived are
codes with values now; put into words they give the same sentence, but for the phrases that were reworded.
"""

import json
import math
import re

import msgspec
import pytest
import recorded

from gpulab.protocol.finding import Finding
from gpulab.views.findings import sentence, sentence_with_place

RENAMED = {
    "warnings": "findings",
    "same": "no_effect_reason",
    "reports": "figures",
    "together.promised": "product",
    "telemetry.why": "no_gpu_reason",
    "ceilings.ceilings.how": "method",
    "variants.soak": "solo_run",
    "variants.roofline.why": "reason",
    "variants.goodput.why": "reasons",
    "variants.goodput.ran": "running",
}
"""Old field to new name, by the names on the way to it."""
SENTENCES = {
    "reason",
    "comparisons.reason",
    "telemetry.no_gpu_reason",
    "telemetry.lost",
    "ceilings.ceilings.method",
    "variants.reason",
    "variants.unchecked",
    "variants.roofline.reason",
}
"""Fields of today that hold a finding where a sentence was."""
ADDED = {
    "environment",
    "explanations",
    "best",
    "failures",
    "log",
    "progress",
    "together.relation",
    *(f"telemetry.{name}" for name in ("last", "recent", "peaks", "clocks", "slowed", "age_s", "stale")),
    *(f"variants.{name}" for name in ("bytes_per_s", "flops_per_s")),
    *(f"variants.solo_run.{name}" for name in ("bytes_per_s", "flops_per_s")),
    *(f"ceilings.ceilings.{name}" for name in ("low", "high", "processes")),
    "variants.goodput.waiting",
    "variants.goodput.accurate",
    *(f"variants.goodput.{name}" for name in ("seconds", "step_s", "step_source", "uncertainty")),
    "variants.goodput.operations.rows",
}
"""Fields that the earlier report did not have."""
NOT_COMPARED = {
    "run_file",
    "findings",
    "variants.goodput.reasons",
    "variants.roofline",
    *(f"variants.goodput.{name}" for name in ("goodput", "partition", "efficiency", "product", "overhead", "reliable")),
    *(f"variants.goodput.operations.{name}" for name in ("self_s", "share")),
}
"""The path of a file that lies elsewhere now; lists of sentences, which have tests of their own; what limits a step,
by other evidence; shares of the step, where shares of the profiled window were.
"""
CHANGED = {
    ("calibration", "title"): "",  # a calibration has no file, and so no title of one
    ("grows", "variants.stage"): "build",  # of a variant that is out of memory: it stood in its reason
}
"""Values that are others on purpose, by run and field."""
STAGE_IN_REASON = ("grows", "variants.reason", " (build)")
REWORDED = (
    (r"alone for (\d+) s a step took (.+) than in turns with the others",
     r"in a solo run of \1 s a step took \2 than when interleaved"),
    (r"the profiler makes its step (\d+%) longer", r"profiling slowed this step by \1"),
    (r"telemetry of the GPU ended early, and nobody watched it since",
     r"GPU telemetry ended early, GPU not monitored afterwards"),
    (r"an effect below (\S+) cannot be told apart here", r"below the minimum detectable effect of \1"),
    (r"so there are (\d+) of them: (.+) build, the floor", r"so there were only \1: \2 build, and the floor"),
    (r"starting its one operation", r"starting its 1 operation"),
    (r"its parent was killed, or it is still under way", r"its process was killed, or it is still running"),
    (r"^what was measured before is in the run file", r"stopped while measuring: \g<0>"),
    (r"mend that first", r"fix that first"),
)  # fmt: skip
"""Old phrase to the one of today, of sentences that a report derives."""


def report_of(name, folder):
    """The report of today as its JSON."""
    return json.loads(msgspec.json.encode(recorded.report_of(name, folder)))


def reworded(text):
    for old, new in REWORDED:
        text = re.sub(old, new, text)
    return text


def as_finding(document):
    return msgspec.convert(document, Finding)


def expected_text(old, finding):
    """The sentence that a finding must give: one that stood in the run file as it is, one that was derived reworded."""
    return old if finding.code == "text" else reworded(old)


def text_with_variant(finding):
    return f"{finding.variant}: {sentence(finding)}" if finding.variant else sentence(finding)


def compare(run, old, new, path=""):
    """Yield what differs between two documents, at any depth."""
    if path in SENTENCES:
        yield from compare_sentences(run, old, new, path)
    elif isinstance(old, dict) and isinstance(new, dict):
        names = {name: RENAMED.get(f"{path}.{name}".lstrip("."), name) for name in old}
        for old_name, new_name in names.items():
            inner = f"{path}.{new_name}".lstrip(".")
            if new_name not in new:
                yield f"{inner} is missing"
            elif inner not in NOT_COMPARED:
                yield from compare(run, old[old_name], new[new_name], inner)
        for name in new.keys() - names.values():
            if f"{path}.{name}".lstrip(".") not in ADDED:
                yield f"{path}.{name} is new"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for old_item, new_item in zip(old, new, strict=True):
            yield from compare(run, old_item, new_item, path)
    elif not same_value(old, new) and CHANGED.get((run, path), old) != new:
        yield f"{path} was {old!r} and is {new!r}"


def compare_sentences(run, old, new, path):
    if old is None or new is None:
        if old is not None or new is not None:
            yield f"{path} was {old!r} and is {new!r}"
        return
    if STAGE_IN_REASON[:2] == (run, path):
        old = old.removesuffix(STAGE_IN_REASON[2])
    finding = as_finding(new)
    with_place = sentence_with_place(finding) if path == "reason" else sentence(finding)
    if with_place != expected_text(old, finding):
        yield f"{path} was {old!r} and is {with_place!r}"


def same_value(old, new):
    """Equal; of numbers to nine digits, since sums are made in another order."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (old, new))
    return math.isclose(old, new, rel_tol=1e-9) if numbers else old == new


@pytest.mark.parametrize("name", recorded.NAMES)
def test_every_field_is_as_it_was(name, tmp_path):
    assert list(compare(name, recorded.earlier_reports()[name], report_of(name, tmp_path))) == []


@pytest.mark.parametrize("name", recorded.NAMES)
def test_every_warning_is_a_finding_that_says_the_same_in_the_same_order(name, tmp_path):
    warnings = recorded.earlier_reports()[name]["warnings"]
    findings = [as_finding(document) for document in report_of(name, tmp_path)["findings"]]
    expected = [expected_text(old, finding) for old, finding in zip(warnings, findings, strict=True)]
    assert [text_with_variant(finding) for finding in findings] == expected


def test_every_rename_and_every_new_field_occurs_in_some_run(tmp_path):
    """A table that is longer than the facts would let a difference pass."""
    old_paths, new_paths = set(), set()
    for name in recorded.NAMES:
        old_paths |= set(paths_of(recorded.earlier_reports()[name]))
        new_paths |= set(paths_of(report_of(name, tmp_path)))
    assert RENAMED.keys() <= old_paths
    assert new_paths >= ADDED | SENTENCES
    texts = " ".join(json.dumps(recorded.earlier_reports()[name]) for name in recorded.NAMES)
    assert [old for old, _ in REWORDED if not re.search(old.lstrip("^"), texts)] == []


def paths_of(document, path=""):
    if isinstance(document, dict):
        for name, value in document.items():
            yield f"{path}.{name}".lstrip(".")
            yield from paths_of(value, f"{path}.{name}".lstrip("."))
    elif isinstance(document, list):
        for value in document:
            yield from paths_of(value, path)


def test_a_difference_would_be_seen():
    old = {"seed": 1, "same": "", "variants": [{"name": "a", "items": 1.0}]}
    new = {"seed": 1, "no_effect_reason": "", "variants": [{"name": "a", "items": 1.0}], "best": None}
    assert list(compare("run", old, new)) == []
    for change, difference in (
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"variants": [{"name": "a", "items": 1.0 + 1e-8}]}, "variants.items was 1.0 and is 1.00000001"),
        ({"variants": []}, "variants was [{'name': 'a', 'items': 1.0}] and is []"),
        ({"another": 0}, ".another is new"),
    ):
        assert list(compare("run", old, {**new, **change})) == [difference]
    assert list(compare("run", {"reason": "boom"}, {"reason": {"code": "killed", "values": {}}})) == [
        "reason was 'boom' and is 'killed: by the system for want of memory, by a limit such as ulimit -t, or by "
        "somebody'"
    ]
