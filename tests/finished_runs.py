"""What a run measured, on machines that are shared.

A control that differs there takes every verdict back, and with it the exit code: of those there are
unit tests over made-up runs. Tests of real runs read what no neighbour changes: statuses, checks,
events, and ratios of times.
"""

from math import exp

from gpulab.core.run_file import read_run_file


def measured_speedup(finished, variant, against):
    """The median by the pairs of the run file, whatever the control says."""
    state = finished.state
    return exp(-state.samples.view().interval((variant, against)).median)


def events_of(finished, kind):
    """The events of that class, in order."""
    return [event for event in read_run_file(finished.run_file).events if isinstance(event, kind)]
