"""Operations side by side: names of kernels that fit, figures that are never cut, shapes where
there is room.
"""

import pytest
from conftest import printed
from run_reports import profiled

from gpulab.features.goodput.events import Operation
from gpulab.features.goodput.operation_table import short_name
from gpulab.features.goodput.operations import operations


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::mm", "aten::mm"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
        (
            "void at::native::vectorized_elementwise_kernel<4, "
            "at::native::CUDAFunctor_add<float>, array<char*, 3ul> >(int, "
            "at::native::CUDAFunctor_add<float>)",
            "vectorized_elementwise_kernel CUDAFunctor_add",
        ),
        (
            "void (anonymous namespace)::softmax_warp_forward<float, 10>(float*, int)",
            "softmax_warp_forward",
        ),
        ("sm80_xmma_gemm_f32f32_tilesize64x64x8", "sm80_xmma_gemm_f32f32_tilesize64x64x8"),
    ],
)
def test_a_kernels_name_fits_on_a_line(name, short):
    assert short_name(name) == short


def row(name, self_s, calls=10, share=0.25, shapes=""):
    return Operation(
        name=name, calls=calls, self_s=self_s, share=share, shapes=shapes, on_device=False
    )


def of_variants(*names, **changes):
    """Each variant's mm takes its place in milliseconds."""
    rows = (
        [row("aten::mm", 1e-3 * (i + 1), shapes=f"{i}x{i}"), row("aten::add", 1e-6)]
        for i in range(len(names))
    )
    variants = [(name, {"operations": table}) for name, table in zip(names, rows, strict=True)]
    return operations(profiled(*variants, **changes))


def cells(text, start):
    (row_cells,) = [line.split() for line in text.splitlines() if line.startswith(start)]
    return row_cells


def test_operations_of_one_variant_have_their_shapes():
    rows = [
        row("aten::mm", 2e-3, shapes="8x8, 8x8"),
        row("aten::mm", 1e-3, shapes="[4, 4]"),
        row("k", 1e-6),
    ]
    text = printed(operations(profiled(("v", {"operations": rows}))))
    head, first, second, *_ = [line.split() for line in text.splitlines()]
    assert head == ["operations", "of", "a", "step", "calls", "self", "share", "shapes"]
    assert first == ["aten::mm", "10", "2.00", "ms", "25%", "8x8,", "8x8"]
    assert second[-2:] == ["[4,", "4]"]
    assert "v" not in text.split()


def test_operations_of_two_variants_stand_side_by_side():
    text = printed(of_variants("base", "other"))
    assert text.splitlines()[0].split() == ["base", "other"]
    assert text.splitlines()[1].split()[4:] == ["calls", "self", "share"] * 2
    assert cells(text, "aten::mm") == [
        "aten::mm",
        "10",
        "1.00",
        "ms",
        "25%",
        "10",
        "2.00",
        "ms",
        "25%",
    ]
    assert "shapes" not in text


@pytest.mark.parametrize(
    "name", ["aten::mm", "a_kernel_of_a_long_name_that_nobody_reads_to_its_end"]
)
def test_operations_fit_whatever_the_width(name):
    for count in range(1, 9):
        variants = [
            (f"a_long_variant_{i}", {"operations": [row(name, 1e-3, shapes="8x8, " * 9)]})
            for i in range(count)
        ]
        for width in (60, 80, 100, 120, 160):
            text = printed(operations(profiled(*variants)), width)
            assert all(len(line) <= width for line in text.splitlines())
            assert text.count("1.00 ms") == min(count, 5)
            assert ("shapes" in text) == (width >= (80 if count == 1 else 120))


def test_operations_of_many_variants_are_those_of_the_baseline_and_the_last():
    text = printed(
        of_variants("base", "second", "third", "fourth", "fifth", "sixth", "all_together"), 120
    )
    assert text.splitlines()[0].split() == ["base", "fourth", "fifth", "sixth", "all_together"]
    shown = [word for ms in ("1.00", "4.00", "5.00", "6.00", "7.00") for word in (ms, "ms", "25%")]
    assert cells(text, "aten::mm") == ["aten::mm", *shown, "6x6"]  # the shapes of the longest
    assert "not shown: second, third" in text
    narrow = printed(of_variants("base", "second", "third", "fourth", "fifth", "sixth", "all"))
    assert cells(narrow, "aten::mm") == ["aten::mm", *(word for word in shown if word != "25%")]
    assert "not shown" not in printed(of_variants("base", "second", "third", "fourth", "fifth"))


def test_operations_are_of_an_item_where_that_is_compared():
    text = printed(of_variants("base", "other", per="item"))
    assert "operations per item" in text
    assert cells(text, "aten::mm") == [
        "aten::mm",
        "5",
        "500",
        "µs",
        "25%",
        "5",
        "1.00",
        "ms",
        "25%",
    ]


def test_without_a_profile_there_is_nothing_to_show():
    assert operations(profiled(("v", {}))) is None
