"""Lines of version 1 become events of today: every renamed event, field and stage, and sentences as text."""

import json

import msgspec
import pytest

from gpulab.protocol import events as e
from gpulab.protocol.ceiling import Ceiling
from gpulab.protocol.finding import finding
from gpulab.protocol.run_file import read_run_file
from gpulab.protocol.statuses import FailureKind, Stage
from gpulab.protocol.version_1 import decode_version_1


def upgraded(tag, **fields):
    return decode_version_1(json.dumps({"type": tag, "t": 1.0, **fields}).encode())


def text(sentence):
    return finding("text", text=sentence)


PARTITION = {"window_s": 1.0, "seconds": {"useful": 1.0}, "marked": True, "on_device": False}
CEILING = {"roof": "cache", "kind": "read", "unit": "B/s", "best": 2.0, "median": 1.0}


def test_a_soak_is_a_solo_run():
    fields = {"variant": "a", "started": 1.0, "ended": 3.0, "steps": 9, "time_s": 0.2, "restored_bytes": 5}
    assert upgraded("Soaked", **fields) == e.SoloRun(t=1.0, **fields)
    assert upgraded("StageStarted", stage="soak", variant="a") == e.StageStarted(
        t=1.0, stage=Stage.SOLO_RUN, variant="a"
    )
    exited = upgraded("WorkerExited", code=1, signal=None, stage="soak", variant="a")
    assert exited == e.WorkerExited(t=1.0, code=1, signal=None, stage=Stage.SOLO_RUN, variant="a")


def test_what_a_stage_of_ceilings_is_at_is_its_detail():
    roof = upgraded("StageStarted", stage="ceilings", variant="cache read 1 MiB")
    assert roof == e.StageStarted(t=1.0, stage=Stage.CEILINGS, detail="cache read 1 MiB")
    assert upgraded("StageStarted", stage="ceilings") == e.StageStarted(t=1.0, stage=Stage.CEILINGS)


def test_a_notice_is_a_finding():
    assert upgraded("Noticed", text="a sentence") == e.Noticed(t=1.0, finding=text("a sentence"))


def test_messages_of_failures_are_causes():
    failed = upgraded("VariantFailed", variant="b", kind="error", stage="soak", message="ValueError: boom", line=3)
    assert failed == e.VariantFailed(
        t=1.0, variant="b", kind=FailureKind.ERROR, stage=Stage.SOLO_RUN, cause=text("ValueError: boom"), line=3
    )
    too_large = upgraded("OutOfMemory", variant="b", stage="build", message="too large")
    assert too_large == e.OutOfMemory(t=1.0, variant="b", stage=Stage.BUILD, cause=text("too large"))


def test_reasons_are_findings_but_that_of_an_end_of_measuring():
    wrong = upgraded("Checked", variant="b", when="before", ok=False, error=0.5, reason="off by much")
    assert wrong == e.Checked(t=1.0, variant="b", when="before", ok=False, error=0.5, reason=text("off by much"))
    right = upgraded("Checked", variant="b", when="after", ok=True, tolerance=1e-4)
    assert (right.reason, right.tolerance) == (None, 1e-4)
    assert upgraded("VariantRefused", variant="b", reason="settings").reason == text("settings")
    assert upgraded("VariantSkipped", variant="b", reason="no bits").reason == text("no bits")
    assert upgraded("TelemetryLost", reason="GPU lost").reason == text("GPU lost")
    assert upgraded("Stopped", reason="width").reason == "width"


def test_fields_of_profiles_and_plans_have_their_names_of_today():
    phases = upgraded("Phases", variant="a", steps=3, seconds={"": 1.0}, ran={"": 0.5})
    assert phases == e.Phases(t=1.0, variant="a", steps=3, seconds={"": 1.0}, running_s={"": 0.5})
    profile = {"variant": "a", "steps": 3, "plain_s": 1.0, "profiled_s": 2.0, "partition": PARTITION, "operations": []}
    assert upgraded("Profiled", **profile, same=True).repeatable is True
    assert upgraded("Profiled", **profile, same=False).repeatable is False
    planned = upgraded("Planned", rounds=5, epochs=20, floor=0.03, dear=True)
    assert planned == e.Planned(t=1.0, rounds=5, epochs=20, floor=0.03)  # expensive builds are like others today


def test_ceilings_have_a_method():
    measured = upgraded("CeilingsMeasured", at="now", whole=True, ceilings=[CEILING | {"how": "64 MiB"}, CEILING])
    method, blank = Ceiling(**CEILING, method=text("64 MiB")), Ceiling(**CEILING)
    assert measured == e.CeilingsMeasured(t=1.0, at="now", complete=True, ceilings=(method, blank))


def test_telemetry_has_its_reasons_and_problems_as_findings():
    none = upgraded("TelemetryStarted", why="no driver", problems=["PCIe width 8 of 16"])
    assert none == e.TelemetryStarted(t=1.0, no_gpu_reason=text("no driver"), problems=[text("PCIe width 8 of 16")])
    sampled = upgraded("TelemetryStarted", gpu="H200", unsupported={"sm": "not supported by this device"})
    assert (sampled.no_gpu_reason, sampled.unsupported) == (None, {"sm": "not supported by this device"})
    reading = upgraded("Telemetry", since=0.5, values={"sm": 1.0}, problems=["Xid 79"])
    assert reading == e.Telemetry(t=1.0, since=0.5, values={"sm": 1.0}, problems=[text("Xid 79")])


@pytest.mark.parametrize(
    "event",
    [
        e.Log(t=1.0, lines=["a", "é"], skipped=3),
        e.WarmedUp(t=1.0, variant="a", times_s=[1.0], drift=0.1, drifting=True),
        e.Counted(t=1.0, variant="a", operations=4, flops=None),
        e.RunEnded(t=1.0, outcome="cancelled"),
        e.WorkerDone(t=1.0, sent=7),
    ],
)
def test_what_was_not_renamed_is_as_it_was(event):
    assert decode_version_1(msgspec.json.encode(event)) == event


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbled",
        b"\xff\xfe",
        b"7",
        b"[]",
        b"null",
        b"{}",
        b'{"type":7}',
        b'{"type":null}',
        b'{"type":"Noticed"}',
        b'{"type":"Stopped","reason":"boredom"}',
        b'{"type":"CeilingsMeasured","at":"now"}',
        b'{"type":"CeilingsMeasured","at":"now","ceilings":[7]}',
        b'{"type":"RunStarted","at":"","host":"h"}',
        b'{"type":"RunStarted","at":"","host":"h","request":{"variants":7}}',
        b'{"type":"RunStarted","at":"","host":"h","request":[]}',
        b'{"type":"Telemetry","since":0.5,"values":{},"problems":null}',
        b'{"type":"StageStarted","stage":["soak"]}',
        b'{"type":"StageStarted"}',
    ],
)
def test_a_garbled_line_is_a_value_error(line):
    with pytest.raises(ValueError, match="not an event"):
        decode_version_1(line)


def test_a_type_that_is_not_known_is_none():
    assert decode_version_1(b'{"type":"Later","t":1.0,"stage":7}') is None


def test_a_file_of_version_1_counts_what_it_could_not_read(tmp_path):
    path = tmp_path / "run.jsonl"
    lines = [
        '{"format":"gpulab.run","version":1,"gpulab":"0.0.9"}',
        '{"type":"Noticed","t":1.0,"text":"a sentence"}',
        '{"type":"Noticed","t":1.0}',
        '{"type":"Later","t":1.0}',
        '{"type":"Soaked","t":1.0,"variant":"a","started":1.0,"ended":3.0,"steps":9,"time_s":0.2}',
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    recording = read_run_file(path)
    assert [type(event) for event in recording.events] == [e.Noticed, e.SoloRun]
    assert (recording.header.version, recording.garbled, recording.unknown) == (1, [3], 1)
