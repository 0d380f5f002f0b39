"""Tables of styles and colours have an entry for every member of what they are of."""

import pytest

from gpulab.core.statuses import Conclusion, Status, Verdict
from gpulab.draw.styles import OUTCOME_STYLES, STYLES
from gpulab.headless.picture import VERDICT_COLOURS


@pytest.mark.parametrize(
    ("table", "kinds"),
    [(STYLES, (Verdict, Status)), (OUTCOME_STYLES, (Conclusion,)), (VERDICT_COLOURS, (Verdict,))],
)
def test_every_member_has_an_entry(table, kinds):
    assert table.keys() == {member for kind in kinds for member in kind}
