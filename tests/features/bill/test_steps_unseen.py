"""The bill of a step of slow programs, by authors who had not read the code: where the time goes
stands in its first rows, and not in those of their twins.

A twin has the calls of its program, and what is slow there costs it less than 3 %.
"""

import json
import re
from pathlib import Path

import pytest

UNSEEN = Path(__file__).parent / "unseen"
SLOW = {
    "adam_deep": ("adam_shallow", r"optimizer\.step"),
    "store_first": ("store_later", "receive"),
    "gallery_half": ("gallery_single", r"to\(torch.float32"),
    "cache_long": ("cache_short", r"torch\.cat"),
    "records_many": ("records_few", r"json\.loads|torch\.tensor"),
    "tally_many": ("tally_few", r"table\["),
    "volume_command": ("volume_rare", "subprocess"),
    "ranks_all": ("ranks_some", r"\.sort\("),
    "spread_numpy": ("spread_small", r"np\."),
    "shards_files": ("shards_few", "read_batch"),
}
"""The program, its twin, and the line or function that is slow in the first."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def _shares(lab, program, slow):
    """Return the share of each row of the step, and whether it is what is slow."""
    path = UNSEEN / f"{program}.py"
    source = path.read_text().splitlines()
    target = lab.folder / f"{program}.json"
    options = ("--device", "cpu", "--time", "1", "--telemetry", "off", "--json", target)
    lab.call("--run", f"{path}:step", *options)
    rows = json.loads(target.read_text())["runs"][0]["variants"][0]["step_bill"]
    step_s = sum(row["seconds"] for row in rows)
    for row in rows:
        own = row["file"] == path.name
        text = " ".join(source[line - 1] for line in row["lines"] if own)
        yield row["seconds"] / step_s, bool(re.search(slow, f"{text} {row['function']}"))


@pytest.mark.parametrize("program", SLOW)
def test_what_is_slow_stands_in_the_first_two_rows_and_takes_less_of_the_twin(lab, program):
    twin, slow = SLOW[program]
    found = list(_shares(lab, program, slow))
    assert any(is_slow for _, is_slow in found[:2]), found
    assert _sum(_shares(lab, twin, slow)) < _sum(found)


def _sum(found):
    return sum(share for share, is_slow in found if is_slow)
