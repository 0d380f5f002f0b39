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
    "adam_deep": (
        r"optimizer\.step",
        {"DEPTH = 60": "DEPTH = 3", "WIDTH = 64": "WIDTH = 192", "BATCH = 128": "BATCH = 3072"},
    ),
    "gallery_half": (r"to\(torch.float32", {"STORED = torch.float16": "STORED = torch.float32"}),
    "cache_long": (r"torch\.cat", {"PROMPT = 4096": "PROMPT = 16", "WIDTH = 256": "WIDTH = 1024"}),
    "records_many": (
        r"json\.loads|torch\.tensor",
        {
            "RECORDS = 256": "RECORDS = 12",
            "FIELDS = 128": "FIELDS = 8",
            "WIDTH = 512": "WIDTH = 2560",
        },
    ),
    "tally_many": (
        r"table\[",
        {
            "SAMPLES = 2048": "SAMPLES = 16",
            "INPUTS = 64": "INPUTS = 2048",
            "WIDTH = 128": "WIDTH = 2560",
        },
    ),
    "volume_command": (
        "subprocess",
        {"WIDTH = 512": "WIDTH = 1536", "BATCH = 64": "BATCH = 256", "EVERY = 1": "EVERY = 11"},
    ),
    "ranks_all": (
        r"\.sort\(",
        {"DOCUMENTS = 400_000": "DOCUMENTS = 3_000", "WIDTH = 16": "WIDTH = 4096"},
    ),
    "spread_numpy": (
        r"np\.",
        {
            "BATCH = 4096": "BATCH = 256",
            "INPUTS = 32": "INPUTS = 2048",
            "WIDTH = 64": "WIDTH = 2048",
            "OUTPUTS = 64": "OUTPUTS = 8",
        },
    ),
    "shards_files": (
        "read_batch",
        {"SAMPLES = 256": "SAMPLES = 8", "HIDDEN = 128": "HIDDEN = 65536"},
    ),
    "store_first": (
        "receive",
        {
            "    features = receive()\n    hidden = backbone(images)": "    hidden = backbone(images)\n    features = receive()"
        },
    ),
}
"""The program, the line or function that is slow in it, and what its twin has instead of what."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def _shares(lab, program, slow, instead):
    """Return the share of each row of the step, and whether it is what is slow."""
    text = (UNSEEN / f"{program}.py").read_text()
    for old, new in instead.items():
        assert text.count(f"{old}\n") == 1
        text = text.replace(f"{old}\n", f"{new}\n")
    path = lab.write(f"{program}.py", text)
    source = text.splitlines()
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
    slow, instead = SLOW[program]
    found = list(_shares(lab, program, slow, {}))
    assert any(is_slow for _, is_slow in found[:2]), found
    assert _sum(_shares(lab, program, slow, instead)) < _sum(found)


def _sum(found):
    return sum(share for share, is_slow in found if is_slow)
