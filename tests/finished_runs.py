"""What a run measured, on machines that are shared: a control that differs there takes every verdict back."""

from math import exp

from gpulab.protocol.run_file import read_run_file
from gpulab.protocol.statuses import Verdict


def control_differs(finished):
    return finished.run["control"]["verdict"] in (Verdict.FASTER, Verdict.SLOWER)


def unless_control_differs(finished, verdict):
    """The verdict to expect: the rule is that no comparison counts once the control is no longer the same."""
    return Verdict.INVALID if control_differs(finished) else verdict


def measured_speedup(finished, variant, against):
    """The median by the pairs of the run file, whatever the control says."""
    state = finished.state
    return exp(-state.samples.view([]).interval((variant, against), expensive=state.expensive).median)


def events_of(finished, kind):
    """The events of that class, in order."""
    return [event for event in read_run_file(finished.run_file).events if isinstance(event, kind)]
