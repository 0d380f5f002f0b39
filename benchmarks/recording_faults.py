"""What keeps a recorded run of a lesson from shipping; each fault is a line for whoever recorded it."""

import ast

import gpulab
from gpulab.catalog.catalog import folders, read_file
from gpulab.catalog.recordings import recorded_name
from gpulab.core.events import RunStarted
from gpulab.core.jobs import subject_of
from gpulab.core.run_file import read_run_file
from gpulab.core.statuses import BoundKind, ExitCode, Grade, Verdict
from gpulab.features.roofline.bound import OVER

LARGEST_BYTES = 200_000
_REFUSED = (Verdict.WRONG, Verdict.INVALID)
_OF_THE_LESSON = {"tolerance_widened"}
"""Doubts about what a lesson declares: they are its own, whoever records it."""
_NARROW = 1.1
"""The width of a control, up to which an effect that is smaller is the lesson's own too."""
_NO_CODE = ("claim", "no_effect_reason", "terms", "cpu", "smoke", "sweep")
"""Keywords of a scenario that only tell, which a replay takes from today's lesson
(gpulab/catalog/todays.py), and those of other runs than a default one on a GPU.
"""


def faults_of(path):
    """Why a packed run file may not ship as the recording of the lesson of its name."""
    size = path.stat().st_size
    if size > LARGEST_BYTES:
        yield f"{size:,} bytes"
    if not _runs_todays_code(path):
        yield "another code than the lesson of today"
    report = gpulab.load(path)
    if report.exit_code != ExitCode.MEASURED:
        yield f"exit code {report.exit_code}: {report.outcome}"
    yield from _faults_of_points(report)
    yield from _accusations(report)


def _runs_todays_code(path):
    events = read_run_file(path).events
    started = next(event for event in events if isinstance(event, RunStarted))
    today = read_file(folders()[-1] / f"{recorded_name(path)}.py")
    return code_of(subject_of(started.request.job).source) == code_of(today.source)


def code_of(source):
    """The code of a scenario's source, as far as a default run on a GPU is made of it: without
    comments, docstrings and claims.

    A replay shows today's text beside the code that ran. Where that code is today's, the text is
    true of the run; else it speaks of variants, parameters or kernels that never ran.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [word for word in node.keywords if word.arg not in _NO_CODE]
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            node.body = [statement for statement in node.body if not _is_docstring(statement)]
    return ast.dump(tree)


def _is_docstring(statement):
    """Return whether it is a string alone, as below an attribute."""
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant and isinstance(statement.value.value, str)


def _faults_of_points(report):
    """Without the causes that are unexplained: what the numbers do not say is no fault of a run."""
    for variant in report.variants:
        if variant.cause and variant.cause.bound == BoundKind.UNKNOWN:
            yield f"{variant.name}: cause unknown"
        for point in filter(None, (variant.roofline, *variant.operation_points)):
            if point.fraction.value > OVER:
                yield f"{variant.name}: {point.variant} at {point.fraction.value:.1%} of its roof"


def _accusations(report):
    control = report.control
    if control and control.verdict in (Verdict.FASTER, Verdict.SLOWER, *_REFUSED):
        yield f"control: {control.verdict}"
    own = {*_OF_THE_LESSON}
    if control and control.speedup and control.speedup.high <= _NARROW * control.speedup.low:
        own.add("control_too_wide")
    for comparison in report.comparisons:
        pair = f"{comparison.variant} vs {comparison.against}"
        trust = comparison.trust
        if comparison.verdict in _REFUSED:
            yield f"{pair}: {comparison.verdict}"
        elif trust and trust.grade == Grade.DOUBTFUL:
            codes = dict.fromkeys(reason.code for reason in trust.reasons)
            if codes.keys() - own:
                yield f"{pair}: doubtful, {', '.join(codes)}"
