"""Honest comparisons as users write them, of ways to do the same: none may be accused, and none may
fail.
"""

from pathlib import Path

import pytest
from tables import files_of

pytest_plugins = ("judged_runs",)
FILES, _ = files_of(Path(__file__).parent / "comparisons")
QUICK = ("look_up",)
"""Of the files of which something was accused before, the quickest."""


@pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["smoke", "whole"]
)
@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, marks=[pytest.mark.slow] * (file.name not in QUICK), id=file.name)
        for file in FILES
    ],
)
def test_an_honest_comparison_is_accused_of_nothing(run, module_lab, file, whole):
    results = run(module_lab.write(f"{file.name}.py", file.text()), whole=whole)
    assert list(results) == file.variants
    for name, result in results.items():
        assert result.variant["status"] == "ok", result
        assert result.caught_by == set(), result
        assert (result.variant["unchecked"] is not None) == ("unchecked=" in file.sources[name]), (
            result
        )


def test_there_are_sixty():
    assert len(FILES) >= 60
    assert sum(len(file.variants) for file in FILES) >= 147
