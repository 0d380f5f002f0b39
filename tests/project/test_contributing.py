"""The recipes of CONTRIBUTING against the tree: every file that one names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PATHS = sorted(set(re.findall(r"`((?:gpulab|tests|scenarios|benchmarks)/[^` ]*)`", TEXT)))
CODE = re.compile(r"`([A-Za-z_]{3,})` (?:in|of) `(gpulab/[^`]*\.py)`")


def test_every_file_that_a_recipe_names_exists():
    assert len(PATHS) > 40
    assert [path for path in PATHS if not list(ROOT.glob(path.replace("NAME", "*")))] == []


def test_a_name_that_a_recipe_gives_a_file_is_in_it():
    named = CODE.findall(re.sub(r"\n\s*", " ", TEXT))
    assert len(named) > 10
    missing = [(name, path) for name, path in named if name not in (ROOT / path).read_text()]
    assert missing == []
