"""No text of a report drives a terminal, or begins a line of its own, whatever the texts of its run
file are: they are made readable at the door, and no view has to.
"""

from hostile import DECODED, EACH_RECORDING, KNOWN, hostile
from recorded import run_file

from gpulab.core.readable import readable
from gpulab.core.run_file import read_run_file
from gpulab.report.build import build_report, fold_all


@EACH_RECORDING
def test_a_report_has_no_text_that_could(recorded, tmp_path):
    events = read_run_file(run_file(recorded, tmp_path)).events
    report = build_report(fold_all(hostile(event, KNOWN | DECODED) for event in events))
    assert readable(report) == report
