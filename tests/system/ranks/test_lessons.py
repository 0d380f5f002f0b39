"""The distributed lessons: right on real processes, with the bytes that they promise; a copy of one
that leaves something out is wrong.
"""

from pathlib import Path

import pytest

from gpulab.core.statuses import Status

SCENARIOS = Path(__file__).parents[3] / "scenarios"
SPOILED = {
    # lesson: (ranks, a variant, a text of it, its replacement)
    "gradient_buckets": (
        3,
        "overlapped",
        "                bucket.scatter()\n\n    return",
        "                if bucket is not under_way[0][0]:\n"
        "                    bucket.scatter()\n\n    return",
    ),
}
"""What is left out: a bucket that is not scattered back."""


@pytest.fixture(scope="module", params=SPOILED)
def spoiled(request, module_lab):
    """A run of a lesson of which one variant is spoiled, and that variant."""
    name = request.param
    ranks, variant, text, replacement = SPOILED[name]
    lesson = (SCENARIOS / f"{name}.py").read_text()
    assert lesson.count(text) == 1
    copy = module_lab.write(f"{name}.py", lesson.replace(text, replacement))
    return module_lab.run(copy, "--smoke", "--set", f"ranks={ranks}"), variant


def test_a_spoiled_variant_of_a_lesson_is_wrong_and_the_others_are_right(spoiled):
    finished, wrong = spoiled
    statuses = {variant["name"]: variant["status"] for variant in finished.run["variants"]}
    expected = dict.fromkeys(statuses, Status.OK) | {wrong: Status.WRONG}
    assert statuses == expected, finished.stdout
