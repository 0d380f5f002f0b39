"""Tensors within whatever a scenario hands over: collected, restored, poisoned and compared."""

import math

import numpy as np
import pytest
import torch
from found import finding
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.engine.build import agreement as g
from gpulab.engine.build import tensors as t


def test_leaves_are_found_in_every_collection():
    module = torch.nn.Linear(2, 3)
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    array = np.zeros(4, dtype=np.float32)
    leaves = t.leaves([{"a": torch.ones(1)}, (module,), optimizer, array, None, 2.5, True, "text"])
    assert len(leaves) == 1 + 2 + 6 + 1 + 4
    assert [leaf.item() for leaf in t.leaves({"b": torch.tensor(2), "a": torch.tensor(1)})] == [
        1,
        2,
    ]
    t.poison(t.leaves(array))
    assert np.isnan(array).all()
    with pytest.raises(TypeError, match="a object is not a tensor"):
        t.leaves([object()])


def test_state_that_cannot_be_restored_is_refused():
    with pytest.raises(TypeError, match="Python number"):
        t.live_leaves("state", {"step": 3, "w": torch.ones(1)})
    assert len(t.live_leaves("state", [torch.tensor(1.0, dtype=torch.float64)])) == 1


def test_putting_back_upsets_no_graph():
    weight = torch.nn.Parameter(torch.ones(3))
    loss = (weight * weight).sum()
    saved = t.copies(t.leaves(weight))
    t.poison(t.leaves(weight))
    t.put_back(t.leaves(weight), saved)
    loss.backward()
    assert weight.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int32, torch.uint8]
)
def test_poison_is_what_ff_bytes_read_as(dtype):
    tensor = torch.zeros(5, dtype=dtype)
    t.poison([tensor])
    expected = torch.full((tensor.nbytes,), 255, dtype=torch.uint8).view(dtype)
    assert torch.equal(tensor, expected) or (
        torch.isnan(tensor).all() and torch.isnan(expected).all()
    )


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float8_e4m3fn, torch.complex64, torch.int64]
)
def test_a_change_is_seen_and_can_be_undone(dtype):
    tensor = torch.full((4,), 3.0).to(dtype)
    saved = t.copies([tensor])
    t.poison([tensor])
    assert t.changed([tensor], saved)
    t.put_back([tensor], saved)
    assert not t.changed([tensor], saved)


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_a_sparse_tensor_is_the_tensors_that_it_consists_of(layout):
    """Writing to them changes it; beside an output that is dense it is dense too."""
    sparse = torch.eye(3).to_sparse(layout=layout)
    *places, values = t.live_leaves("inputs", {"in": sparse})
    assert all(place.dtype == torch.int64 for place in places)
    t.put_back([values], [torch.full((3,), 2.0)])
    (dense,) = t.leaves([sparse])
    assert torch.equal(dense, 2 * torch.eye(3))


@pytest.mark.parametrize(
    ("dtype", "allowed"),
    [
        (torch.float64, 1e-10),
        (torch.float32, 1e-4),
        (torch.float16, 5e-3),
        (torch.bfloat16, 2e-2),
        (torch.int64, 0.0),
    ],
)
def test_the_tolerance_is_that_of_the_loosest_dtype_that_the_reference_has_or_somebody_declares(
    dtype, allowed
):
    tensor = torch.ones(3).to(dtype)
    assert g.tolerance_of(tensor, tensor) == allowed
    assert g.tolerance_of(torch.ones(3), tensor) == (allowed or 1e-4)
    assert g.tolerance_of(tensor, torch.ones(3)) == 1e-4
    assert g.tolerance_of(tensor, torch.ones(3), ("bf16", None)) == 2e-2


@pytest.mark.parametrize(
    ("dtype", "cap"),
    [
        (torch.float64, 1e-9),
        (torch.float32, 1e-3),
        (torch.float16, 5e-2),
        (torch.bfloat16, 0.1),
        (torch.int64, 5e-2),
    ],
)
def test_a_tolerance_that_is_named_has_a_cap(dtype, cap):
    tensor = (torch.arange(100) % 7 + 100).to(dtype)
    assert g.cap_of(tensor, tensor) == pytest.approx(cap)
    assert g.agree([tensor], [tensor], tolerance=1.0).tolerance == pytest.approx(cap)
    assert not g.agree([torch.zeros_like(tensor)], [tensor], tolerance=1.0).ok


def test_zeros_fail_in_every_dtype():
    for dtype in (
        torch.float64,
        torch.float32,
        torch.bfloat16,
        torch.float16,
        torch.int32,
        torch.complex64,
    ):
        reference = torch.randn(1000).mul(50).to(dtype)
        assert g.agree([reference], [reference.clone()]).ok
        assert not g.agree([torch.zeros_like(reference)], [reference]).ok


def test_a_correct_bf16_product_passes_and_one_bad_element_does_not():
    torch.manual_seed(0)
    a, b = torch.randn(256, 256), torch.randn(256, 256)
    reference = a @ b
    product = (a.bfloat16() @ b.bfloat16()).float()
    agreement = g.agree([product], [reference], dtypes=("bf16",))
    assert agreement.ok
    assert 1e-3 < agreement.error < 1e-2
    strict = g.agree([product], [reference])
    assert not strict.ok
    assert strict.reason == finding("relative_error", error=strict.error, allowed=1e-4)
    rms = reference.square().mean().sqrt()
    product[7, 7] += rms
    bad = g.agree([product], [reference], dtypes=("bf16",))
    assert (bad.ok, bad.reason.code) == (False, "one_element_off")
    assert bad.reason.values["allowed"] == pytest.approx(5 * 2e-2 * float(rms), rel=1e-3)
    assert bad.reason.values["largest"] > bad.reason.values["allowed"]


def test_integers_are_exact_beyond_what_a_float_can_tell():
    large = torch.tensor([2**53], dtype=torch.int64)
    agreement = g.agree([large + 1], [large])
    assert agreement.reason == finding("elements_differ", differ=1, elements=1)
    second = g.agree([torch.ones(3), large + 1], [torch.ones(3), large])
    assert (second.ok, second.tensor) == (False, 1)


def test_nan_infinity_and_counts():
    tensor = torch.ones(4)
    assert g.agree([tensor * math.nan], [tensor]).reason == finding("output_has_nan")
    assert g.agree([tensor * math.inf], [tensor * math.inf]).ok
    infinite = g.agree([tensor * math.inf], [tensor])
    assert (infinite.ok, infinite.error) == (False, None)
    enormous = g.agree([tensor.double() * 1e40], [tensor])
    assert (enormous.ok, enormous.error) == (False, None)
    assert g.agree([tensor[:3]], [tensor]).reason == finding(
        "element_counts_differ", elements=3, baseline=4
    )
    assert g.agree([tensor[:2], tensor[2:]], [tensor]).ok
    assert not g.agree([tensor[:2]], [tensor]).ok


def fake():
    with FakeTensorMode():
        return torch.ones(4)


def emptied():
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    return tensor


def jagged():
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)


WITHOUT_PLAIN_VALUES = {
    "a quantized tensor": lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8),
    "a meta tensor": lambda: torch.empty(4, device="meta"),
    "a nested tensor": jagged,
    "a FakeTensor": fake,
    "a mkldnn tensor": lambda: torch.ones(4).to_mkldnn(),
    "a Tensor without values": emptied,
    "no arithmetic for torch.bits8": lambda: torch.ones(4, dtype=torch.uint8).view(torch.bits8),
}


@pytest.mark.filterwarnings("ignore")  # some of these kinds are deprecated, or a prototype
@pytest.mark.parametrize("kind", WITHOUT_PLAIN_VALUES)
def test_tensors_whose_values_cannot_be_compared_are_refused_by_name(kind):
    with pytest.raises(TypeError, match=f"{kind}.*: name "):
        t.leaves({"out": [torch.ones(1), WITHOUT_PLAIN_VALUES[kind]()]})


def test_every_other_layout_of_plain_values_is_compared():
    values = torch.ones(4, dtype=torch.complex64) * (1 + 2j)
    for tensor in (
        values.conj(),
        values.conj().imag,
        torch.ones(1).expand(5),
        torch.ones(2, 3).t(),
        torch.empty(0),
    ):
        leaves = t.leaves(tensor)
        saved = t.copies(leaves)
        assert not t.changed(leaves, saved)
        assert g.agree(leaves, saved).ok


class _Called(TorchDispatchMode):
    """The operations that were called, by name."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize(
    "layout",
    [
        lambda images: images,
        lambda images: images.to(memory_format=torch.channels_last),
        lambda images: images.permute(2, 0, 3, 1),
    ],
)
def test_outputs_that_lie_alike_are_compared_without_copies(layout, near):
    """On an H100 3 ms passed behind blocks whose outputs were NHWC, and 1 ms behind others."""
    expected = layout(torch.rand(2, 128, 7, 5) + 1)
    actual = expected * (1 + 1e-6 * near)
    assert actual.stride() == expected.stride()
    with _Called() as called:
        agreement = g.agree([actual], [expected])
    assert agreement.ok
    assert bool(agreement.error) == near
    assert not {"clone", "copy_", "contiguous"} & set(called.names)


def test_elements_are_compared_by_their_places_in_any_layout():
    expected = torch.rand(2, 8, 7, 5) + 1
    in_nhwc = expected.to(memory_format=torch.channels_last)
    assert g.agree([in_nhwc], [expected]).error == 0
    assert g.agree([in_nhwc], [in_nhwc.clone()]).error == 0
    swapped = in_nhwc.clone()
    swapped[0, 0, 0, 0] = in_nhwc[1, 7, 6, 4] + 1
    assert not g.agree([swapped], [in_nhwc]).ok
    assert not g.agree([swapped], [expected]).ok
