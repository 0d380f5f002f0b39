"""Every declared finding makes one line of typed values, whatever they are; unknown codes and values
of a strange run file are survived.
"""

import inspect
import types
import typing

import msgspec
import pytest

from gpulab.core.findings import Finding
from gpulab.report.sentences import (
    declarations,
    lines,
    sentence,
    sentence_with_place,
    short_sentence,
    to_json,
)

HOSTILE = "\x1b[31mx\u202e\n\nFORGED\ttext\x00"
SAMPLES = {float: 0.5, int: 3, str: "text", bool: True, list[str]: ["a", "b"]}
STRANGE = (None, "?", HOSTILE, -1, 1e300, True, [], ["a"])
NONE = types.NoneType
EVIDENCE = {
    "pipe_is_busy": {"pipe": "tensor"},
    "near_compute_roof": {"arithmetic": 0.9, "dtype": "fp32"},
    "near_memory_roof": {"memory": 0.9},
}
"""Values that no keyword of a declaration names."""


def values_of(declaration, *, missing=False):
    """A value for each keyword, by its type; None, where it may be, if they are to be `missing`."""
    hints = typing.get_type_hints(declaration.words)
    values = {}
    for name, parameter in inspect.signature(declaration.words).parameters.items():
        if name == "variant" or parameter.kind == parameter.VAR_KEYWORD:
            continue
        hint = hints[name]
        kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        values[name] = None if missing and NONE in kinds else SAMPLES[kinds[0]]
    return values | EVIDENCE.get(declaration.code, {})


def found(code, values):
    return Finding(code=code, variant="v", values=values)


@pytest.mark.parametrize("missing", [False, True])
def test_every_finding_makes_one_line_of_its_values(missing):
    for code, declaration in declarations().items():
        finding = found(code, values_of(declaration, missing=missing))
        text = declaration.sentence(finding)
        assert text == sentence(finding)
        assert text[0] != " ", code
        assert text[-1] not in " :;,.", code
        assert "None" not in text, code
        assert short_sentence(finding), code


def test_a_line_of_several_variants_names_each_with_its_own_values():
    several = [code for code, known in declarations().items() if known.several]
    assert several
    for code in several:
        values = values_of(declarations()[code])
        (line,) = lines(
            [Finding(code=code, variant=name, values=values) for name in ("first", "second")]
        )
        head, _, rest = line.partition(": ")
        assert head[0].islower(), code
        first, second = rest.split(", second ")
        assert first == f"first {second}", code
        assert "None" not in line, code


def strange_cases():
    """Codes, and values that no worker sends."""
    for code, declaration in declarations().items():
        values = values_of(declaration)
        yield code, {}
        yield code, {"cause": code, "need": HOSTILE, "stage": HOSTILE}
        for name in values:
            for strange in STRANGE:
                yield code, {**values, name: strange}


def test_no_value_of_a_strange_run_file_breaks_a_sentence_or_its_line():
    for code, case in strange_cases():
        one, other = (Finding(code=code, variant=name, values=case) for name in (HOSTILE, "b"))
        texts = [sentence(one), short_sentence(one), sentence_with_place(one), *lines([one, other])]
        # an override of the direction is not printable either
        assert all(text.isprintable() for text in texts), (code, case)


@pytest.mark.parametrize(
    ("code", "values", "text"),
    [
        (
            "killed",
            {},
            "killed (SIGKILL): out of memory, a limit (ulimit -t), or another process",
        ),
        ("processes_left_running", {"count": 1}, "the scenario left 1 process running; terminated"),
        ("malformed_event_lines", {"count": 1200}, "1,200 malformed event lines ignored"),
        (
            "relative_error",
            {"error": None, "allowed": 1e-10},
            "relative error unbounded, allowed 1e-10",
        ),
        (
            "solo_run_differs",
            {"change": 0.157, "seconds": 1.2},
            "in a solo run of 1 s a step took 15.7% longer than when interleaved",
        ),
        (
            "timed_steps_checked",
            {"count": 37, "error": 3.1e-7, "allowed": 1e-4, "late": 12, "state": 2},
            "37 blocks checked, largest error 3.1e-07 (allowed 0.0001), 12 with values that "
            "change between two steps, state of 2 tensors checked too",
        ),
        (
            "near_memory_roof",
            {"memory": 0.76},
            "memory 76%: fewer bytes make it faster",
        ),
        (
            "thread_is_preempted",
            {"memory": 0.05, "share": 0.99},
            "its thread is descheduled 99% of the time, 5% of the nearest roof (memory 5%): "
            "measure on a quiet machine",
        ),
        (
            "above_roof",
            {
                "declared": 1.0e12,
                "unit": "FLOP",
                "time_s": 1.42e-3,
                "rate": 7.03e14,
                "roof": "matrix fp32",
                "roof_rate": 1.454e11,
                "ratio": 4834.8,
                "allowed": 1.1,
            },
            "declares 1.00 TFLOP in 1.42 ms: 703 TFLOP/s, 4,835x of matrix fp32 (145 GFLOP/s), "
            "and more than 1.1x is not possible",
        ),
    ],
)
def test_what_some_of_them_say(code, values, text):
    assert sentence(found(code, values)) == text


def test_json_has_the_sentence_of_every_finding_beside_its_code():
    known, later = found("xid", {"xid": 31}), found("of_later", {"x": HOSTILE})
    params = {"code": "x", "variant": "v", "values": 3}
    value = {"reason": known, "findings": [later], "params": params, "none": None}
    read = msgspec.json.decode(to_json(value))
    assert read["reason"]["sentence"] == sentence(known)
    assert read["findings"][0]["sentence"] == sentence(later)
    assert read["params"] == params
    assert msgspec.convert(read["reason"], Finding) == known
