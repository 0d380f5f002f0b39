"""Every finding has words, all words are of some finding, and each says what the table of examples
says.

Examples of runs and machines stand in two tables each: sentences as they were before findings had
codes, and those with other words than before.
"""

import examples_of_checks as of_checks
import examples_of_machines as machines
import examples_of_measurements as measurements
import examples_of_rooflines as of_rooflines
import examples_of_trust as of_trust
import pytest

from gpulab.core.finding import Finding, finding
from gpulab.report.sentences import WORDS, lines, sentence

EXAMPLES = {
    **measurements.AS_BEFORE,
    **measurements.REWORDED,
    **machines.AS_BEFORE,
    **machines.REWORDED,
    **of_checks.EXAMPLES,
    **of_rooflines.EXAMPLES,
    **of_trust.EXAMPLES,
}


@pytest.mark.parametrize("code", WORDS)
def test_every_finding_is_put_into_words(code):
    values, text = EXAMPLES[code]
    assert sentence(Finding(code=code, variant="v", values=values)) == text
    assert "None" not in text


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
