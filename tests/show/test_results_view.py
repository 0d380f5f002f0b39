"""The result of a run as a person reads it: the cause of a failure first, then claims, explanations
and notes.
"""

import pytest
from conftest import printed
from found import finding
from msgspec.structs import replace
from recorded import report_of
from run_reports import CPU, compared, run, two_variants, variant

from gpulab.core.events import Reported, VariantFailed
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode, FailureKind, Stage, Status, Verdict
from gpulab.features.telemetry.result import TelemetryReport
from gpulab.report.report import Method
from gpulab.show.results import failures, result
from gpulab.show.view import claims
from gpulab.stats.comparison import Comparison, Sustained

WIDE = 400
"""Wide enough for every sentence to stay in one line."""


def lines_of(report, width=WIDE):
    return [line.rstrip() for line in printed(result(report), width).splitlines()]


def place_of(lines, start):
    """The number of the line that starts so."""
    return next(number for number, line in enumerate(lines) if line.startswith(start))


@pytest.fixture
def recorded(tmp_path):
    return lambda name: report_of(name, tmp_path)


def test_the_cause_of_a_failed_variant_stands_before_claims_and_notes(recorded):
    lines = lines_of(recorded("raises"))
    cause = place_of(lines, "bad failed (check, line 13): ValueError: boom")
    assert cause < place_of(lines, "claim: nothing; measured here: third 1.088x (faster)")
    assert cause < place_of(lines, "note: good: off the CPU for 23% of the time")
    assert [line for line in lines if "boom" in line] == [lines[cause]]


def test_why_a_run_failed_stands_before_what_was_skipped_for_it(recorded):
    lines = lines_of(recorded("arguments-at-import"))
    cause = place_of(lines, "failed: sys.exit(2) (load, line 3)")
    assert lines[cause + 1] == "step skipped: not measured: the run ended before it"


def test_a_run_that_was_stopped_is_called_interrupted_before_its_notes(recorded):
    lines = lines_of(recorded("cancelled"))
    reason = place_of(
        lines, "interrupted: stopped while measuring: earlier results are in the run file"
    )
    assert reason < place_of(lines, "note: off the CPU")


def test_every_way_to_leave_a_variant_out_has_its_reason(recorded):
    lines = lines_of(recorded("checks"))
    for line in (
        "stale wrong: ignores its inputs",
        "refused invalid: torch.set_num_threads: set while building; it belongs in "
        "Work(context=...)",
        "aside skipped: needs [more] bits",
        "on_gpu skipped: needs cuda: this torch is a build without CUDA",
    ):
        assert line in lines


def test_the_first_variant_that_does_not_fit_says_where_and_the_others_are_skipped(recorded):
    lines = lines_of(recorded("grows"))
    assert place_of(lines, "large out of memory (build): RuntimeError: ") < place_of(
        lines, "larger skipped: large did"
    )
    assert "sweet spot: middle, the first within 5% of the best time per item" in lines


def test_variants_that_are_skipped_for_one_reason_share_a_line():
    lines = lines_of(
        run(
            variant("base"),
            variant("first", status=Status.SKIPPED, reason=finding("no_gpu", need="cuda")),
            variant("second", status=Status.SKIPPED, reason=finding("no_gpu", need="cuda")),
        )
    )
    assert "first, second skipped: needs cuda: no NVIDIA device in this machine" in lines


def test_plain_functions_have_no_control_and_no_speedup(recorded):
    report = recorded("function")
    assert report.control is not None
    lines = lines_of(report)
    table = place_of(lines, "variant")
    assert lines[table].split() == ["variant", "time/step", "±"]
    assert lines[table + 1].startswith("step ")
    assert not [line for line in lines if line.startswith("control")]
    differing = Comparison(
        variant="control", against="", speedup=1.2, low=1.1, high=1.3, verdict=Verdict.SLOWER
    )
    text = lines_of(
        run(
            variant("step"),
            functions=True,
            control=differing,
            explanations=[finding("builds_differ", speedup=1.2)],
        )
    )
    assert (
        "the first function, built twice, differs from itself: 1.20x; times of single builds vary by as much"
        in text
    )
    assert not [line for line in text if line.startswith("control")]


def test_only_what_weakens_a_result_is_a_note():
    text = lines_of(
        run(variant("step"), findings=[finding("weakening")], explanations=[finding("explaining")])
    )
    assert text.index("explaining") < text.index("note: weakening")


def test_notes_of_one_kind_are_one_line_that_names_the_variants(recorded):
    lines = lines_of(recorded("phases"))
    assert [line for line in lines if line.startswith("note: ")] == [
        "note: off the CPU for a part of the time (contention on a busy machine, or steps that wait): "
        "waits 48%, hardly 12%",
    ]


def test_what_explains_a_result_is_no_note_and_stands_above_the_notes(recorded):
    lines = lines_of(recorded("fixes"))
    together = place_of(
        lines,
        "product of the individual speedups 3.43x, all fixes together 3.19x (3.08 to 3.38): some",
    )
    assert together < place_of(lines, "note: ")
    same = lines_of(recorded("preallocation-h100-1"))
    assert (
        place_of(same, "staged_once, out_argument: no effect here: the allocator keeps its blocks")
        > 0
    )


def test_the_heading_has_the_device_and_parameters_and_no_uuid(recorded):
    report = recorded("precision-h100-1")
    assert report.device.uuid
    lines = lines_of(report)
    assert lines[:2] == [
        "precision · Precision: fewer bits for each number, more products in the same time.",
        "NVIDIA H100 80GB HBM3 · n=8192",
    ]
    assert not [line for line in lines if report.device.uuid in line]
    short = lines_of(run(variant(), smoke=True, quick=True, device=CPU, title="scenario"))
    assert short[:2] == [
        "scenario",
        "AMD EPYC, 1 thread · a smoke run: not for conclusions · a quick run: wide intervals",
    ]


def test_the_method_has_its_line(recorded):
    lines = lines_of(recorded("batched_matmul-h100-1"))
    assert (
        "wall clock, hot cache · interval over builds · floor 1% · stopped: intervals are narrow"
        in next(line for line in lines if line.startswith("20 builds, "))
    )


def test_what_a_variant_reports_is_shown_with_its_name():
    figures = [
        Reported(variant="first", name="p99 latency", value=0.25),
        Reported(variant=None, name="lost", value=None),
    ]
    lines = lines_of(run(variant("first"), figures=figures))
    assert "first: p99 latency 0.25" in lines
    assert not [line for line in lines if "lost" in line]


@pytest.mark.parametrize(("kind", "style"), [("cpu", "dim"), ("cuda", "yellow")])
def test_that_there_is_no_gpu_telemetry_matters_on_a_gpu(kind, style):
    telemetry = TelemetryReport(no_gpu_reason=finding("no_driver"))
    report = run(variant(), device=Device(kind=kind, name="device"), telemetry=telemetry)
    (text,) = [part for part in result(report).renderables if "no GPU telemetry" in str(part)]
    assert text.plain == "no GPU telemetry: no NVIDIA driver found: telemetry shows the host only"
    assert text.style == style


def test_claims_under_way_say_so():
    under_way = two_variants(claim="2x", outcome=Conclusion.UNDER_WAY)
    assert claims(under_way) == [("claim: 2x; measured here: new 1.50x (faster so far)", "")]
    before = run(
        variant("old"), variant("new", claim="3x"), claim="2x", outcome=Conclusion.UNDER_WAY
    )
    assert claims(before) == [("claim: 2x; not measured yet", "")]
    final = run(variant("old"), variant("new", claim="3x"), claim="2x", comparisons=[compared()])
    assert [text for text, _ in claims(final)] == [
        "claim: 2x; measured here: new 1.50x (faster)",
        "claim of new: 3x; measured here: 1.50x",
    ]
    assert claims(run(variant("old"), claim="2x")) == [("claim: 2x", "")]


def test_a_required_speedup_that_was_not_reached_names_the_variant():
    reason = finding("below_required", "new", required=1.8)
    lines = lines_of(
        two_variants(reason=reason, exit_code=ExitCode.SLOWER, outcome=Conclusion.SLOWER)
    )
    assert "slower than required: the interval of new lies below the required 1.8x" in lines


def test_failures_end_with_the_last_output_lines(recorded):
    text = failures(recorded("raises")).plain
    assert text.splitlines()[-3:] == ["ValueError: boom", "last output lines:", "  about to fail"]
    assert failures(recorded("cancelled")).plain == ""
    assert "Traceback" not in failures(recorded("timeout")).plain


def test_a_variant_that_failed_while_another_stage_ran_names_stage_and_line():
    broken = variant(
        "bad",
        status=Status.FAILED,
        time_s=None,
        reason=finding("killed"),
        stage=Stage.MEASURE,
        line=7,
    )
    assert any(
        "bad failed (measure, line 7): killed (SIGKILL): out of memory" in line
        for line in lines_of(run(broken))
    )


def test_a_method_without_builds_is_not_shown():
    assert not [line for line in lines_of(run(variant())) if "epochs" in line]
    assert lines_of(run(variant(), method=Method(epochs=3, rounds=9)))[-1].startswith(
        "3 builds, 9 rounds of paired "
    )


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_of_a_recorded_run_is_wider_than_the_terminal_nor_outside_ascii_where_that_is_asked(
    recorded, width
):
    for name in ("precision-h100-1", "checks", "phases", "fixes"):
        text = printed(result(recorded(name)), width, ascii_only=True)
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= width


def noted(*codes):
    return [
        finding(code, "first", drift=0.04, share=0.5, change=0.2, seconds=2.0, ratio=3.0)
        for code in codes
    ]


def test_all_notes_stand_those_that_change_the_result_first():
    findings = noted("solo_run_differs", "moves_more_bytes", "off_the_cpu")
    report = run(variant("first"), findings=[*findings, finding("xid", xid=31)])
    notes = [line for line in lines_of(report) if line.startswith("note: ")]
    assert len(notes) == 4
    assert "Xid 31" in notes[0]


CUDA_ERROR = (
    "AcceleratorError: CUDA error: an illegal memory access was encountered\nSearch for "
    "`cudaErrorIllegalAddress' in "
    "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more "
    "information.\nCUDA kernel errors might be asynchronously reported at some other API call, "
    "so the stacktrace below might be incorrect.\nFor debugging consider passing "
    "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side "
    "assertions.\n"
)


def test_a_cuda_error_is_said_once_and_without_what_torch_repeats_below_it():
    reason = finding("exception", message=CUDA_ERROR)
    broken = [
        variant(name, status=Status.FAILED, time_s=None, reason=reason, stage=Stage.BUILD)
        for name in ("bad", "worse")
    ]
    failure = VariantFailed(
        variant="bad",
        kind=FailureKind.ERROR,
        stage=Stage.BUILD,
        cause=reason,
        traceback=f"  File x\n{CUDA_ERROR}",
    )
    report = run(variant("good"), *broken, failures=[failure, replace(failure, variant="worse")])
    lines = lines_of(report)
    text = (
        "bad, worse failed (build): AcceleratorError: CUDA error: an illegal memory access was "
        "encountered"
    )
    assert text in lines
    assert failures(report).plain.splitlines() == [
        "  File x",
        "AcceleratorError: CUDA error: an illegal memory access was encountered",
    ]


def test_what_failed_late_keeps_its_numbers_and_no_verdict_stands_beside_them():
    kept = compared("new", reason=finding("failed_after", "new", count=11, unit="processes"))
    lines = lines_of(
        run(
            variant("old"),
            variant("new", status=Status.FAILED, time_s=None, line=3),
            comparisons=[kept],
        )
    )
    row = next(line for line in lines if line.startswith("new  "))
    assert row.split() == ["new", "1.50x", "1.425", "to", "1.575", "failed"]
    assert "new against old: failed after 11 processes: their pairs are kept" in lines


def test_the_best_is_named_where_it_is_shown_to_be():
    several = Method(epochs=9, rounds=9, comparisons=3, familywise=0.03)
    names = [variant(name) for name in ("old", "first", "second", "third")]
    both = [compared(name) for name in ("first", "second", "third")]
    assert "best: second" in lines_of(
        run(*names, comparisons=both, method=several, best="second", best_among=["second"])
    )
    apart = lines_of(
        run(*names, comparisons=both, method=several, best_among=["third", "first", "second"])
    )
    assert "best: third, first or second (statistically tied)" in apart
    slower = [
        compared(name, speedup=1 / 1.5, verdict=Verdict.SLOWER) for name in ("first", "second")
    ]
    tied = run(*names[:3], comparisons=slower, method=several, best_among=["first", "second"])
    assert not [line for line in lines_of(tied) if line.startswith("best")]
    single = lines_of(run(*names[:2], comparisons=both[:1], best="first", best_among=["first"]))
    assert not [line for line in single if line.startswith("best")]


def test_a_sustained_speedup_that_heads_the_result_stands_above_the_table_and_in_the_claim():
    heads = finding("power_cap_alone", "new")
    sustained = Sustained(
        speedup=6.923, low=6.9, high=6.95, items_per_s=176e12, headline_reason=heads
    )
    report = run(
        variant("old"),
        variant("new"),
        claim="10x",
        comparisons=[compared("new", speedup=7.81, sustained=sustained)],
    )
    lines = lines_of(report)
    head = place_of(lines, "new sustained 6.92x (6.90 to 6.95), interleaved 7.81x")
    assert (
        head
        < place_of(lines, "production runs one variant: power-limited alone")
        < place_of(lines, "variant ")
    )
    assert "claim: 10x; measured here: new 6.92x sustained (faster)" in lines
    assert "sustained, each alone: new 176 T items/s" in lines
    beside = run(
        *report.variants,
        comparisons=[compared("new", sustained=replace(sustained, headline_reason=None))],
    )
    assert "sustained, each alone: new 6.92x (6.90 to 6.95), 176 T items/s" in lines_of(beside)
