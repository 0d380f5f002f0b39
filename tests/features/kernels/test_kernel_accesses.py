"""Addresses of a warp, followed through PTX: against conflicts and sectors that are counted by
hand.
"""

import pytest

from gpulab.features.kernels.memory_accesses import Accesses, accesses

THREADS = (32, 1, 1)


def of(body, threads=THREADS):
    lines = (line.strip() for line in body.split(";"))
    return accesses(
        "\n".join(line if line.endswith(":") else f"\t{line};" for line in lines if line), threads
    )


def shared(stride, width="f32"):
    address = (
        f"mov.u32 %r1, %tid.x; mul.lo.s32 %r2, %r1, {stride}; mov.u32 %r3, tile; add.s32 %r4, "
        "%r3, %r2;"
    )
    return of(f"{address} ld.shared.{width} %f1, [%r4];").bank_conflicts


@pytest.mark.parametrize(
    ("stride", "passes"),
    [(4, 1), (8, 2), (12, 1), (16, 4), (64, 16), (128, 32), (132, 1), (0, 1), (256, 32)],
)
def test_bank_conflicts_of_words_so_many_bytes_apart(stride, passes):
    assert shared(stride) == passes


def test_wide_accesses_go_by_parts_of_a_warp():
    assert shared(16, "v4.f32") == 1
    assert shared(8, "v2.f32") == 1
    assert shared(512, "v4.f32") == 8


@pytest.mark.parametrize(
    ("stride", "share"), [(4, 1.0), (8, 0.5), (32, 0.125), (128, 0.125), (0, None), (1, 1.0)]
)
def test_the_share_of_the_sectors_that_a_warp_uses(stride, share):
    width = "u8" if stride == 1 else "f32"
    found = of(
        f"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, {stride}; add.s64 "
        f"%rd3, %rd1, %rd2;ld.global.{width} %f1, [%rd3]; st.global.{width} [%rd3], %f1;"
    )
    assert found == Accesses(None, share, share)


def test_what_depends_on_loaded_data_is_not_known():
    found = of(
        "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, "
        "%rd1, %rd2;ld.global.u32 %r2, [%rd3]; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd5, %rd1, "
        "%rd4; ld.global.f32 %f1, [%rd5];"
    )
    assert found == Accesses(None, 1.0, None), "of the index, not of the gather"


def test_a_block_of_two_dimensions_has_its_rows_in_a_warp():
    body = (
        "mov.u32 %r1, %tid.y; shl.b32 %r2, %r1, 7; mov.u32 %r3, tile; add.s32 %r4, %r3, %r2; "
        "st.shared.f32 [%r4], %f1;"
    )
    assert of(body, (16, 16, 1)).bank_conflicts == 2
    assert of(body, (32, 8, 1)).bank_conflicts == 1


@pytest.mark.parametrize(
    "body", ["", "x", "ld.shared.f32 %f1, [", "bfe.u32 %r1, %r2, 1, 2;", "shr.u32 %r1, 1, -1;"]
)
def test_anything_may_stand_there(body):
    assert accesses(body, THREADS) == Accesses(None, None, None)
