"""What recorded runs print in every form, and the screens of the app, are as they were stored.
`python tests/nets/nets.py --store` takes over what is meant to differ, once it was read.
"""

import os
import re
from difflib import unified_diff

import net_of_printed
import nets
import pytest
import same_everywhere

from gpulab.catalog import needs


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """The environment, and what the machine has, are those of the net in here alone."""
    environment = dict(os.environ)
    monkeypatch.setattr(needs, "_MISSING", dict(needs._MISSING))
    same_everywhere.one_machine()
    yield
    os.environ.clear()
    os.environ.update(environment)


RENDERERS = [[], ["--verbose"], ["--export", "page.md"], ["--export", "page.html"]]
IN_EVERY_FORM = ("calibration", "h200/precision", "quick")
"""Of the other runs a test looks at one form of each renderer."""
SCREENS = {
    *("list", "course", "lesson", "code", "history", "compare", "earlier run"),
    *("replay half-way", "replay result", "replay roofline", "replay operations"),
    *("replay failed", "replay function"),
}
"""Those of every test run, at 80x24; tests of the app read what the others say."""


def _is_slow(net, name):
    return net == "screens" and name.removesuffix(" 80x24") not in SCREENS


@pytest.mark.parametrize(
    ("net", "name"),
    [
        pytest.param(net, name, marks=[pytest.mark.slow] * _is_slow(net, name))
        for net in ("printed", "screens")
        for name in nets.names_of(net)
    ],
)
def test_it_is_as_it_was_stored(net, name, monkeypatch):
    stored = nets.stored_file(net, name).read_text()
    if name in net_of_printed.RUNS and name not in IN_EVERY_FORM:
        monkeypatch.setattr(net_of_printed, "_FORMS", RENDERERS)
        stored = "".join(_of_renderers(stored))
    now = nets.text_of((net, name))
    assert not list(
        unified_diff(stored.splitlines(), now.splitlines(), "stored", "now", lineterm="")
    )


def _of_renderers(text):
    """Yield what was stored of the commands of one form each."""
    for said in re.split(r"^(?=\$ gpulab --replay )", text, flags=re.MULTILINE):
        flags = said.partition("\n")[0].partition(".jsonl")[2].split()
        if flags in RENDERERS:
            yield said
