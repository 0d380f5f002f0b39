"""Lessons that need a GPU, without one: with a stand-in for what a CPU lacks each is right, and with
a mistake that is made in such code the variants that have it are wrong.
"""

from pathlib import Path

import pytest

from gpulab.core.statuses import Status

SCENARIOS = Path(__file__).parents[2] / "scenarios"
STAND_INS = Path(__file__).with_name("stand_ins")
NEEDS = {
    # lesson: (needs, stand-in, parameters)
    "graph_of_two_shapes": ('needs=("cuda",)', "graphs_on_cpu", ()),
    "repeated_to_device": ('needs=("cuda",)', "link_on_cpu", ()),
    "tensor_core_shapes": ('needs=("cuda",)', None, ()),
    "triton_autotune": (
        'needs=("cuda", "triton")',
        "autotune_on_cpu",
        # the tile that is taken, 32x64x64, divides no size; NumPy has no bf16
        ("m=70", "n=130", "k=96", "dtype=fp16"),
    ),
}
SPOILED = [
    # (lesson, wrong variants, text, its replacement)
    (
        "graph_of_two_shapes",
        {"padded"},
        "return result[: len(batch)].clone()",
        "return result[: len(batch)] if pads else result.clone()",  # overwritten by the next one
    ),
    (
        "graph_of_two_shapes",
        {"graph_each"},
        "            static[: len(batch)].copy_(batch)",
        "            static[: len(batch)].copy_(batch if pads else static)",  # never filled
    ),
    (
        "graph_of_two_shapes",
        {"graph_each"},
        "return graphs[len(batch)](batch)",
        "return graphs[fewer](batch[:fewer])",  # the graph of the other shape
    ),
    (
        "repeated_to_device",
        {"pinned_each_step"},
        "rows = batch.to(lab.device, non_blocking=non_blocking)",
        "rows = batch.to(lab.device)\n"
        "                if non_blocking:  # sent once, and not when the batch has changed\n"
        "                    rows = vars(step).setdefault('sent', rows)",
    ),
    (
        "repeated_to_device",
        {"moved_once"},
        "return rows.mean(1)",
        "return rows.mean(1) if moves else vars(step).setdefault('kept', rows.mean(1))",  # so is the result
    ),
    (
        "tensor_core_shapes",
        {"eight_more"},
        "left[:, common:] = 0",
        "left[:, common:n] = 0",  # the padding leaks into the sums
    ),
    (
        "tensor_core_shapes",
        {"transposed"},
        "left.t().contiguous().t()",
        "left.t().contiguous()",
    ),
    (
        "tensor_core_shapes",
        {"not_contiguous"},
        "torch.stack((left, left), dim=2)[:, :, 0]",
        "torch.stack((left, left), dim=2).flatten(1)[:, : len(left)]",  # each column twice
    ),
    (
        "triton_autotune",
        {"autotuned"},
        "    kernel[programs](",
        "    if kernel is _product:  # a grid for the largest tile, whatever is chosen\n"
        "        programs = (triton.cdiv(m, 128) * triton.cdiv(n, 256),)\n"
        "    kernel[programs](",
    ),
    (
        "triton_autotune",
        {"missing_key", "autotuned", "paired"},  # steps of 64; those of `fixed` divide k
        "for start in range(0, k, K):",
        "for start in range(0, k // K * K, K):",
    ),
]
QUICK = ("graph_of_two_shapes",)
"""The others run with the slow tests."""


def slow_unless_quick(lesson, *values):
    marks = [pytest.mark.slow] * (lesson not in QUICK)
    return pytest.param(lesson, *values, marks=marks, id=lesson)


def wrong_variants(lab, lesson, text="", replacement=""):
    """The variants that the lab calls wrong; all others are right, or refused as the lesson says."""
    needs, stand_in, params = NEEDS[lesson]
    source = (SCENARIOS / f"{lesson}.py").read_text()
    assert not text or source.count(text) == source.count(needs) == 1
    source = source.replace(needs, "needs=()").replace(text, replacement)
    if stand_in:
        lab.write(f"{stand_in}.py", (STAND_INS / f"{stand_in}.py").read_text())
        source = source.replace("\nimport torch\n", f"\nimport {stand_in}\nimport torch\n")
    options = [option for param in params for option in ("--set", param)]
    interprets = lesson == "triton_autotune"
    if interprets:
        pytest.importorskip("triton.language", exc_type=ImportError)
        lab.env["TRITON_INTERPRET"] = "1"  # before anything imports Triton
    finished = lab.run(lab.write(f"{lesson}.py", source), "--smoke", *options, fresh=interprets)
    statuses = {seen["name"]: seen["status"] for seen in finished.run["variants"]}
    wrong = {name for name, status in statuses.items() if status == Status.WRONG}
    skipped = {name for name, status in statuses.items() if status == Status.SKIPPED}
    assert skipped <= {"captured_once"}
    assert {statuses[name] for name in statuses.keys() - wrong - skipped} == {Status.OK}
    assert lab.none_left()
    return wrong


@pytest.mark.parametrize("lesson", [slow_unless_quick(lesson) for lesson in NEEDS])
def test_every_variant_of_the_lesson_is_right(lab, lesson):
    assert wrong_variants(lab, lesson) == set()


@pytest.mark.parametrize(
    ("lesson", "variants", "text", "replacement"), [slow_unless_quick(*each) for each in SPOILED]
)
def test_only_what_has_the_mistake_is_wrong(lab, lesson, variants, text, replacement):
    assert wrong_variants(lab, lesson, text, replacement) == variants
