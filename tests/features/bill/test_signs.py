"""Advice on programs by others, who had not read the signs: each flawed one has that of its flaw,
and no clean twin has it.
"""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "following" / "signs"
_SPEC = importlib.util.spec_from_file_location("check_signs", FOLDER / "check.py")
check = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(check)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("case", check.SIGNS, ids=lambda case: case["flawed"])
def test_what_was_planted_is_advised_and_of_its_twin_it_is_not(case):
    assert case["sign"] in check.advised(check.flawed(case))
    assert case["sign"] not in check.advised(check.mended(case))
