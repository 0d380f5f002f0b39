"""Limits of what comes in: from files of strangers, from scenarios, from worker processes, from the
command line.

Whoever applies one names it in the message. Standard library only.
"""

SOURCE_BYTES = 1_000_000
"""Of a scenario's file."""
MESSAGE_LENGTH = 64 * 1024
"""Characters of an exception's message, of its traceback, and of every other text in an event."""
LINE_BYTES = 1 << 20
"""Of one event on the pipe of a process."""
RUN_FILE_LINE_BYTES = 8 << 20
"""Of one line of a run file: the first event holds the scenario's source."""
RUN_FILE_BYTES = 1 << 30
"""Of a run file, unpacked: days of telemetry."""
WHOLE_RUN_FILE_BYTES = 256 << 20
"""Of one whose events are all kept, which take five times as much memory."""
NAMES = 100
"""Names that one scenario may make up while it runs: of reported figures, and of phases."""
NAME_LENGTH = 100
"""Characters of such a name, and of a parameter's or a variant's."""
TEXT_LENGTH = 4096
"""Characters of a claim, a topic, a summary, and of a line that a scenario prints."""
KEPT_LINES = 1000
"""Of what a scenario prints, so many first lines and so many last ones stay: in the run file and in
a report.
"""
VARIANTS = 200
"""Variants of a scenario, or functions of one command."""
RANKS = 64
"""Processes of a scenario."""
CANDIDATES = 1000
"""Of one `gpulab.tune`."""
PARAMETERS = 100
"""Parameters of a scenario."""
TERMS = 20
"""Words by which search finds a scenario."""
SWEEP_VALUES = 200
"""Values of a sweep."""
LARGEST_INTEGER = 2**63 - 1
"""Whole numbers of parameters and events lie between this and its negative."""
LARGEST_EXPONENT = 64
"""In the arithmetic of a file that is read without running it, whose sides are within
LARGEST_INTEGER: no power has more than 64 x 63 bits.
"""
FILE_NAME_BYTES = 180
"""Of what a scenario's name and values add to the name of a file: file systems allow 255 in all."""
TIME_S = 7 * 24 * 3600.0
"""Of a run, and of every duration that the command line takes."""
SPEEDUPS = (1e-9, 1e9)
"""The least and the largest that may be required."""
EPOCHS = 100_000_000
"""Epochs, rounds and steps that an event may count."""
TRACE_BYTES = 1 << 30
"""Of a trace of the profiler, unpacked."""
TRACE_EVENTS = 2_000_000
"""Of a trace: one takes up to a kilobyte and 10 µs."""
TRACE_VALUE_LENGTH = 4 << 20
"""Characters of one event of a trace."""
TRACE_TEXTS_LENGTH = 32 << 20
"""Characters of the names, threads and inputs of its events, those that are alike counted once."""
USER_FILE_BYTES = 64 << 10
"""Of the theme that is kept, and of the user's keys."""
COMPILE_S = 60.0
"""Of the compiler of CUDA C++, for all that one command shows."""
TELEMETRY_ON, TELEMETRY_OFF = "on", "off"
"""What --telemetry takes beside the name of a GPU."""
