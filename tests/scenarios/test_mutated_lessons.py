"""Shipped lessons whose text was changed so that a variant does less: their own Work has to show
it.
"""

from pathlib import Path

import pytest

from gpulab.core.statuses import Status, Verdict

SCENARIOS = Path(__file__).parents[2] / "scenarios"
MUTATED = {
    # lesson: (variant, text, its replacement, checks of which one notices)
    "training_step": (
        "preallocated",
        "        loss.backward()\n        optimizer.step()\n",
        '        loss.backward()\n        if fixes != {"buffers"}:\n            optimizer.step()\n',
        {"outputs", "timed steps"},
    ),
    "cache_footprint": (
        "half",
        "lambda: torch.sum(chunk, dim=-1, out=sums),",
        "(lambda: sums.copy_(chunk[:, :, : rows // 128].sum(-1).repeat(1, 1, 8))) if chunks == 16\n"
        "        else lambda: torch.sum(chunk, dim=-1, out=sums),",
        {"outputs", "timed steps"},
    ),
    "batch_size": (
        "batch_256",
        "for some, result in batches:\n",
        "for some, result in batches:\n"
        "            if batch == 256 and some.data_ptr() != rows.data_ptr():\n"
        "                result.copy_(out[:256])\n"
        "                continue\n",
        {"outputs", "timed steps"},
    ),
    "optimizer_step": (
        "foreach",
        "        optimizer.step,\n",
        "        (lambda: None) if how.get('foreach') else optimizer.step,\n",
        {"outputs", "timed steps"},
    ),
    "gradient_accumulation": (
        "micro_4",
        "for some, wanted in micro:\n",
        "for some, wanted in micro[: 3 if pieces == 4 else None]:\n",
        {"outputs"},
    ),
}


@pytest.mark.slow  # the gauntlet has the like
@pytest.mark.parametrize("lesson", MUTATED)
def test_a_lesson_in_which_a_variant_does_less_says_so(lab, lesson):
    variant, text, replacement, checks = MUTATED[lesson]
    source = (SCENARIOS / f"{lesson}.py").read_text()
    assert source.count(text) == 1
    path = lab.write(f"{lesson}_mutated.py", source.replace(text, replacement))
    finished = lab.run(path, "--smoke")
    assert finished.variant(variant)["status"] in (Status.WRONG, Status.INVALID)
    assert finished.comparison(variant)["verdict"] in (Verdict.WRONG, Verdict.INVALID)
    trust = finished.comparison(variant)["trust"]
    assert {check["kind"] for check in trust["checks"] if check["state"] == "failed"} & checks
    others = {seen["status"] for seen in finished.run["variants"] if seen["name"] != variant}
    assert others <= {Status.OK, Status.SKIPPED}
