"""Tables of styles and colours have an entry for every member of what they are of."""

import pytest

from gpulab.protocol.statuses import Status, Verdict
from gpulab.report.exit_codes import Conclusion
from gpulab.views.picture import VERDICT_COLOURS
from gpulab.views.text import OUTCOME_STYLES, STYLES


@pytest.mark.parametrize(
    ("table", "kinds"), [(STYLES, (Verdict, Status)), (OUTCOME_STYLES, (Conclusion,)), (VERDICT_COLOURS, (Verdict,))]
)
def test_every_member_has_an_entry(table, kinds):
    assert table.keys() == {member for kind in kinds for member in kind}
