"""What a run came to, against the speedup that is required of it, on recorded runs."""

import pytest
from recorded import run_file

from gpulab.core.statuses import ExitCode
from gpulab.session.run import FileSource, Run


def report_against(name, required_speedup, folder):
    run = Run(FileSource(run_file(name, folder)), required_speedup)
    run.poll()
    assert run.ended
    return run.report


@pytest.mark.parametrize(
    ("name", "required", "code", "reason", "variant"),
    [
        ("batched_matmul-h100-1", None, ExitCode.MEASURED, None, None),
        ("batched_matmul-h100-1", 1.2, ExitCode.MEASURED, None, None),  # 39.3x, 38.9 to 39.6
        ("batched_matmul-h100-1", 39.2, ExitCode.INCONCLUSIVE, "not_shown_to_reach", "bmm"),
        ("batched_matmul-h100-1", 100.0, ExitCode.SLOWER, "below_required", "bmm"),
        ("fixes", 1.5, ExitCode.MEASURED, None, None),
        ("fixes", 2.5, ExitCode.SLOWER, "below_required", "first"),  # though all together reach it
        ("preallocation-h100-1", 0.9, ExitCode.MEASURED, None, None),
        ("lesson-small", 1.2, ExitCode.INCONCLUSIVE, "not_shown_to_reach", "deferred"),
        ("function", 1.2, ExitCode.INCONCLUSIVE, "nothing_compared", None),
        # What keeps a run from being measured comes before what is required of it.
        ("checks", 1.2, ExitCode.WRONG, None, None),
        ("standin-throttled", 1.2, ExitCode.INVALID, None, None),
        ("raises", 1.2, ExitCode.FAILED, "exception", "bad"),
        ("timeout", 1.2, ExitCode.FAILED, None, None),
        ("cancelled", 1.2, ExitCode.INTERRUPTED, None, None),
        ("killed", 1.2, ExitCode.INTERRUPTED, "no_end", None),
    ],
)
def test_the_required_speedup_decides_only_what_was_measured(
    tmp_path, name, required, code, reason, variant
):
    report = report_against(name, required, tmp_path)
    assert report.exit_code == code
    if reason is not None:
        assert (report.reason.code, report.reason.variant) == (reason, variant)
