"""The files of a folder: of whatever depth, and whatever is among them."""

import os
from pathlib import Path

import pytest

from gpulab.core.files import files_below
from gpulab.features.fleet.folder import fold_folder
from gpulab.headless.compare import compare
from gpulab.options import Options, UsageError

DEEP = 1_200


@pytest.fixture
def deep(tmp_path):
    """A folder of so many levels: no path of that length can be made in one call."""
    here = os.open(".", os.O_RDONLY)
    os.chdir(tmp_path)
    for _ in range(DEEP):
        Path("d").mkdir()
        os.chdir("d")
    os.fchdir(here)
    os.close(here)
    yield tmp_path
    for depth in range(DEEP, 0, -1):
        (tmp_path / "/".join("d" * depth)).rmdir()


def test_files_come_in_order_and_what_is_hidden_or_linked_does_not(tmp_path):
    for name in ("b/two", "a/c/one", "three", ".hidden/four", "b/.five"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    passed_over = []
    found = [str(path.relative_to(tmp_path)) for path in files_below(tmp_path, passed_over)]
    assert found == ["a/c/one", "b/two", "loop", "three"]
    assert passed_over == []


def test_folders_that_are_too_deep_are_named(deep):
    report = fold_folder(deep)
    (skipped,) = report.skipped
    assert skipped.reason == "more than 100 folders deep"
    with pytest.raises(UsageError, match="more than 100 folders deep"):
        compare((str(deep), str(deep)), Options())
