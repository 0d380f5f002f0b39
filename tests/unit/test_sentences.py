"""Every finding has words, all words are of some finding, and each says what the table of examples
says.

Examples of runs and machines stand in two tables each: sentences as they were before findings had
codes, and those with other words than before.
"""

import ast
from functools import cache
from pathlib import Path

import examples_of_checks as of_checks
import examples_of_machines as machines
import examples_of_measurements as measurements
import examples_of_rooflines as of_rooflines
import examples_of_trust as of_trust
import pytest

from gpulab.core.finding import Finding, finding
from gpulab.core.statuses import Relation
from gpulab.report.sentences import WORDS, lines, sentence

PACKAGE = Path(__file__).parent.parent.parent / "gpulab"
EXAMPLES = {
    **measurements.AS_BEFORE,
    **measurements.REWORDED,
    **machines.AS_BEFORE,
    **machines.REWORDED,
    **of_checks.EXAMPLES,
    **of_rooflines.EXAMPLES,
    **of_trust.EXAMPLES,
}
MAKERS = {"finding": 0, "notice": 0, "explain": 0}
"""Functions that take a code, by the place of the argument."""
MADE_BY_NAME = {
    "analysis/bound.py": {
        *(
            "above_compute_roof",
            "near_compute_roof",
            "above_memory_roof",
            "near_memory_roof",
            "bytes_stay_in_cache",
        ),
        *(
            "few_bytes_in_memory",
            "bytes_fit_cache",
            "launches_take_the_time",
            "device_waits_for_launches",
        ),
        *(
            "phase_waits",
            "ceilings_missing",
            "device_waits_for_host",
            "counted_near_memory_roof",
            "pipe_is_busy",
        ),
        *(
            "at_power_cap",
            "too_little_in_flight",
            "warps_wait",
            "thread_is_preempted",
            "page_faults_take_the_time",
        ),
        *(
            "strided_accesses",
            "random_accesses",
            "thread_waits",
            "interpreter_takes_the_time",
            "outside_of_torch",
        ),
        *("unexplained", "no_work_declared"),
        *("link_and_near_compute_roof", "above_link_roof", "near_link_roof", "far_from_link_roof"),
    },
    "analysis/telemetry.py": {"clocks_slowed", "gpu_shared"},
    "report/findings.py": {"clocks_not_checked", "processes_not_checked"},
    "report/trust_checks.py": {
        *(
            "outputs_compared",
            "timed_steps_checked",
            "inputs_compared",
            "null_answers_refused",
            "steps_repeated",
        ),
        *("work_counted", "rate_below_roof", "nothing_left_running", "context_and_output_watched"),
        *("control_measured", "processes_measured", "contention_measured", "variants_alone"),
        "clocks_watched",
    },
    "telemetry/gpu.py": {"not_in_client", "keeps_failing"},
    "telemetry/nvml.py": {
        *(
            "not_supported",
            "not_in_driver",
            "not_permitted",
            "no_driver",
            "driver_not_loaded",
            "driver_was_updated",
        ),
        *("gpu_lost", "gpu_needs_reset", "no_driver_permission", "no_such_gpu"),
    },
    "worker/checks.py": {"state_not_named", "state_not_restored"},
    "worker/checking/other_values.py": {"seed_changes_nothing", "seed_changes_shapes"},
    "worker/building/build.py": {"set_while_building", "set_while_stepping", "left_by_context"},
}
"""Codes that reach a finding through a variable, by the file that has them as text."""
RELATIONS = {f"fixes_{relation}" for relation in Relation}
"""Made of `fixes_` and the relation of all fixes to each."""


@cache
def files_below_views():
    """The trees of all files outside of the views, by their paths in the package."""
    paths = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
    return {
        name: ast.parse(path.read_text())
        for name, path in paths.items()
        if not name.startswith("views/")
    }


@cache
def calls():
    """(file, code, names of the values or None where there are more of them) of every finding that
    a call makes.
    """
    made = []
    for name, tree in files_below_views().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                function = (
                    node.func.id
                    if isinstance(node.func, ast.Name)
                    else getattr(node.func, "attr", "")
                )
                arguments = (
                    [node.args[MAKERS[function]]] if function in MAKERS and node.args else []
                )
                if function == "Finding":
                    arguments = [
                        keyword.value for keyword in node.keywords if keyword.arg == "code"
                    ]
                names = {keyword.arg for keyword in node.keywords}
                open_ended = None in names or function == "Finding"
                made += [
                    (name, code, None if open_ended else names)
                    for part in arguments
                    for code in codes_of(part)
                ]
    return made


def codes_of(argument):
    """The codes that an argument may be, as far as they stand there."""
    if isinstance(argument, ast.Constant):
        return [argument.value]
    return (
        [*codes_of(argument.body), *codes_of(argument.orelse)]
        if isinstance(argument, ast.IfExp)
        else []
    )


def texts_of(tree):
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_code_that_is_made_has_words():
    assert len(calls()) > 100
    assert {code for _, code, _ in calls()} <= WORDS.keys()


def test_every_code_that_has_words_is_made():
    by_name = {code for codes in MADE_BY_NAME.values() for code in codes}
    assert {code for _, code, _ in calls()} | by_name | RELATIONS == WORDS.keys()
    for name, codes in MADE_BY_NAME.items():
        assert codes <= texts_of(files_below_views()[name])


def test_every_relation_of_fixes_has_words():
    assert "fixes_" in texts_of(files_below_views()["report/findings.py"])
    assert WORDS.keys() >= RELATIONS


@pytest.mark.parametrize("code", WORDS)
def test_every_finding_is_put_into_words(code):
    values, text = EXAMPLES[code]
    assert sentence(Finding(code=code, variant="v", values=values)) == text
    assert "None" not in text


def test_each_example_has_the_values_that_are_given_where_the_finding_is_made():
    for name, code, names in calls():
        if names is not None and code in EXAMPLES:
            values = EXAMPLES[code][0].keys()
            # by the profiler, which writes the file
            added = {"file"} if name == "analysis/trace.py" else set()
            of_cause = values if "cause" in values else set()
            assert names <= values, f"{name} gives {code} {names}"
            assert values - names <= added | of_cause, f"{name} gives {code} {names}"


def test_no_example_is_of_a_code_that_is_gone_or_stands_twice():
    parts = (measurements.AS_BEFORE, measurements.REWORDED, machines.AS_BEFORE, machines.REWORDED)
    parts = (*parts, of_checks.EXAMPLES, of_rooflines.EXAMPLES, of_trust.EXAMPLES)
    assert sum(map(len, parts)) == len(EXAMPLES)
    assert EXAMPLES.keys() == WORDS.keys()


@pytest.mark.parametrize("code", [code for code, words in WORDS.items() if words.several])
def test_a_line_of_several_variants_names_each_with_its_own_values(code):
    values, _ = EXAMPLES[code]
    (line,) = lines(
        [Finding(code=code, variant=name, values=values) for name in ("first", "second")]
    )
    head, _, rest = line.partition(": ")
    assert head[0].islower()
    first, second = rest.split(", second ")
    assert first == f"first {second}"
    assert "None" not in line


@pytest.mark.parametrize(
    ("example", "text"),
    [
        (
            finding("relative_error", error=None, allowed=1e-10),
            "relative error unbounded, allowed 1e-10",
        ),
        (
            finding("one_element_off", largest=None, allowed=0.1),
            "one element is off by unknown, allowed 0.1",
        ),
        (
            finding("wrong_in_case", case="rows=8", fails=False, error=None, allowed=0.0),
            "in the case rows=8: its elements are not the baseline's",
        ),
        (
            finding("wrong_in_case", case="ties", fails=True, error=None, allowed=0.0),
            "it fails in the case ties, and the baseline does not",
        ),
        (
            finding("timed_step_is_wrong", error=0.5, allowed=1e-4, change=""),
            "in a timed block, in between: relative error 0.5, allowed 1e-04",
        ),
        (
            finding("solo_run_differs", change=0.157, seconds=1.2),
            "in a solo run of 1 s a step took 15.7% longer than when interleaved",
        ),
        (finding("malformed_event_lines", count=1), "1 malformed event line ignored"),
        (
            finding("processes_left_running", count=3),
            "the scenario left 3 processes running; terminated",
        ),
        (
            finding("torch_build", torch="2.13.0", cuda="13.0", gpu_unused=False),
            "2.13.0, built for CUDA 13.0",
        ),
        (
            finding("driver_answers", version=None, devices=[]),
            "it answers; its version is not shown here",
        ),
        (
            finding("needs_cuda_torch", package="cupy-cuda13x 14"),
            "cupy-cuda13x 14; it requires a torch built for CUDA",
        ),
        (
            finding("devices_hidden_by", version=None, value=""),
            "unknown; CUDA_VISIBLE_DEVICES='' hides every device",
        ),
    ],
)
def test_values_that_are_missing_or_few_have_words_too(example, text):
    assert sentence(example) == text
