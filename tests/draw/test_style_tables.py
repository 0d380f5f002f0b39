"""Tables of styles and colours have an entry for every member of what they are of."""

import pytest

from gpulab.core.statuses import Conclusion, Status, Verdict
from gpulab.draw.styles import OUTCOME_STYLES, STYLES


@pytest.mark.parametrize(
    ("table", "kinds"),
    [(STYLES, (Verdict, Status)), (OUTCOME_STYLES, (Conclusion,))],
)
def test_every_member_has_an_entry(table, kinds):
    assert table.keys() == {member for kind in kinds for member in kind}
