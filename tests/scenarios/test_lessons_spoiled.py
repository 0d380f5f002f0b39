"""Lessons at their smallest: each is right, and with one variant spoiled, so that it moves
less than it says, that variant alone is wrong.
"""

from pathlib import Path

import pytest

from gpulab.core.statuses import Status

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SPOILED = {
    # lesson: (variant, text, its replacement)
    "gradient_buckets": (
        "overlapped",
        "                bucket.scatter()\n\n    return",
        "                if bucket is not under_way[0][0]:  # one is not scattered back\n"
        "                    bucket.scatter()\n\n    return",
    ),
    "collectives": (
        "gathered",
        "        torch.sum(all_of_them, dim=0, out=total)\n",
        "        torch.sum(all_of_them[: 2 - lab.rank], dim=0, out=total)  # of rank 0 alone, on 1\n",
    ),
    "ddp_overlap": (
        "accumulated",
        "quiet = micro_batches - reduced",
        "quiet = micro_batches - reduced + (reduced == 1)  # nor does the last one travel",
    ),
    "pipeline_handoff": (
        "double_buffered",
        "dist.isend(stage.results[index],",
        "dist.isend(stage.results[max(0, index - 1)],",  # the batch before
    ),
    "late_rank": (
        "one_late",
        "* lab.ranks / numbers",
        "/ given.numel()",  # a mean of each rank's own rows, of which the last has more
    ),
    "hybrid_sharding": (
        "full_shard",
        "            weight.sub_(momentum, alpha=_LEARNING_RATE / width)\n",
        "            if holders < lab.ranks or lab.rank < lab.ranks - 1:  # a shard is dropped\n"
        "                weight.sub_(momentum, alpha=_LEARNING_RATE / width)\n",
    ),
    "kv_cache": (
        "remote_pages",
        "_gathered(lab, cache[layer]), page)",
        "stale.setdefault(layer, _gathered(lab, cache[layer])), page)",
    ),
    "model_pool": (
        "pooled",
        "model = pool[asked[place][lab.rank]]",
        "model = pool[(asked[place][lab.rank] + (lab.rank == 1 and place == 1)) % models]",
    ),
    "speculative_decoding": (
        "draft_remote",
        "agreed = (chosen[:ahead] == text[at : at + ahead]).cumprod(0).sum()\n",
        "agreed = (chosen[:ahead] == text[at : at + ahead]).cumprod(0).sum()\n"
        "        if drafter != 0:  # one that the target would not choose is accepted\n"
        "            agreed = (agreed + 1).clamp(max=ahead)\n",
    ),
    "reading_a_profile": (
        "one_call",
        "width, layers, 1, copies=True)",
        "width, layers - 1, 1, copies=True)",
    ),
    "custom_op": (
        "custom_op",
        "_layer(data, scale, shift, _registered)",
        "_layer(data, scale, shift * 0, _registered)",
    ),
    "quantized_inference": (
        "int8",
        "torch._int_mm(narrow, weight.t()) * (scales * own)",
        "torch._int_mm(narrow, weight.t()) * own",
    ),
    "serving_batch": (
        "continuous",
        "prompts[each] + texts[each])",
        "prompts[each] + texts[each] * (not refills or batch == 1))",  # without its own past
    ),
}


QUICK = ("gradient_buckets",)
"""The others run with the slow tests."""


@pytest.mark.parametrize(
    "lesson",
    [pytest.param(lesson, marks=[pytest.mark.slow] * (lesson not in QUICK)) for lesson in SPOILED],
)
def test_only_the_spoiled_variant_of_a_lesson_is_wrong(lab, lesson):
    variant, text, replacement = SPOILED[lesson]
    source = (SCENARIOS / f"{lesson}.py").read_text()
    assert source.count(text) == 1
    spoiled = source.replace(text, replacement).replace(
        "\nscenario = ", "\nstale = {}\nscenario = "
    )
    finished = lab.run(lab.write(f"{lesson}.py", spoiled), "--smoke")
    statuses = {seen["name"]: seen["status"] for seen in finished.run["variants"]}
    assert statuses.pop(variant) == Status.WRONG
    assert set(statuses.values()) <= {Status.OK, Status.SKIPPED}
    assert lab.none_left()
