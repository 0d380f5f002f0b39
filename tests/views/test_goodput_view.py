"""The bar of a step and the names of kernels, as they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.model.goodput import CATEGORIES
from gpulab.views.goodput import bar, short


@given(st.lists(st.floats(0.01, 1), min_size=len(CATEGORIES), max_size=len(CATEGORIES)))
def test_a_bar_is_always_as_long_and_in_proportion(weights):
    shares = {name: one / sum(weights) for name, one in zip(CATEGORIES, weights, strict=True)}
    text = bar(shares).plain
    assert len(text) == 30
    for letter, name in (("u", "useful"), ("d", "data wait"), ("l", "launch-bound")):
        assert abs(text.count(letter) - 30 * shares[name]) <= 1


def test_a_mark_of_the_authors_own_is_never_taken_for_another():
    assert bar({"update": 1.0}).plain == "x" * 30
    assert bar({"\x1b[31m": 1.0}).plain == "x" * 30


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("aten::mm", "aten::mm"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, array<char*, 3ul> "
            ">(int, at::native::CUDAFunctor_add<float>)",
            "vectorized_elementwise_kernel CUDAFunctor_add",
        ),
        ("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*, int)", "softmax_warp_forward"),
        ("sm80_xmma_gemm_f32f32_tilesize64x64x8", "sm80_xmma_gemm_f32f32_tilesize64x64x8"),
    ],
)
def test_a_kernels_name_fits_on_a_line(name, shown):
    assert short(name) == shown
