"""Tensors within whatever a scenario hands over: collected, restored, poisoned and compared."""

import math

import numpy as np
import pytest
import torch
from found import finding
from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.engine.build import agreement as g
from gpulab.engine.build import tensors as t
from gpulab.engine.processes.failure import RefusedError


def _rounded(tensors):
    tensors[3].mul_(1 + 1e-6)


def _one_element(tensors):
    tensors[5][0, 0] += 5e-4  # of 4,096: 8e-6 of all of it, and beyond what a zero may be off by


def _an_integer(tensors):
    tensors[20][1] += 1


def _tiny_doubled(tensors):
    tensors[21].mul_(2)


@pytest.mark.parametrize(
    ("change", "place"),
    [(_rounded, None), (_one_element, 5), (_an_integer, 20), (_tiny_doubled, 21)],
)
def test_of_many_tensors_each_is_held_to_the_rules_of_one(change, place):
    expected = [torch.randn(64, 64) for _ in range(20)]
    expected[5][0, 0] = 0.0
    expected += [torch.arange(3), torch.full((4,), 1e-30)]
    actual = t.copies(expected)
    change(actual)
    agreement = g.agree(actual, expected)
    assert agreement.ok == (place is None)
    assert place is None or agreement.tensor == place


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
    with pytest.raises(TypeError, match="an object of class object is not a tensor"):
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
    assert bad.reason.values["allowed"] == pytest.approx(10 * 2e-2 * float(rms), rel=1e-3)
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


FLOATS = np.arange(6, dtype=np.float32)
RECORDS = np.zeros(3, dtype=[("a", "i1"), ("b", "f4")])


ARRAYS = {
    "reversed": FLOATS[::-1],
    "read-only": np.frombuffer(FLOATS.tobytes(), dtype=np.float32),
    "of a bytearray": np.frombuffer(bytearray(FLOATS.tobytes()), dtype=np.float32),
    "broadcast": np.broadcast_to(FLOATS, (2, 6)),
    "of another byte order": FLOATS.astype(">f4"),
    "wider than torch has": FLOATS.astype(np.longdouble),
    "of a record": RECORDS,
    "of objects": np.array([1.5, "text", None], dtype=object),
    "of dates": np.array(["2020-01-01"], dtype="M8[D]"),
    "of texts": np.array(["a", "b"]),
    "empty": np.zeros((0, 3)),
    "masked": np.ma.array([1.0, 2.0], mask=[False, True]),
    "of a masked record": np.ma.array(RECORDS, mask=[(True, False)] * 3),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_an_array_of_any_kind_is_compared(kind):
    array = ARRAYS[kind]
    leaves = t.leaves([array])
    assert leaves
    assert g.agree(leaves, t.leaves([array.copy()])).ok


@pytest.mark.parametrize(
    "kind", ["reversed", "read-only", "of a bytearray", "broadcast", "of another byte order"]
)
def test_inputs_that_cannot_be_written_to_are_left_alone_and_such_state_is_refused(kind):
    inputs = (torch.ones(3), ARRAYS[kind])
    assert t.live_leaves("inputs", inputs) == []
    assert t.read_only(inputs)[0]
    assert t.read_only((torch.ones(3), FLOATS)) == (False, "")
    with pytest.raises(TypeError, match="cannot be restored"):
        t.live_leaves("state", inputs)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_a_file_that_is_mapped_is_never_written_to(tmp_path):
    path = tmp_path / "values"
    path.write_bytes(FLOATS.tobytes())
    mapped = np.memmap(path, dtype=np.float32, mode="r+")
    shared = torch.from_file(str(path), shared=True, size=6)
    for array in (mapped, mapped[2:], np.asarray(mapped), shared):
        t.poison(t.leaves(array))
    assert t.live_leaves("inputs", mapped[1:]) == t.live_leaves("inputs", shared) == []
    for mode in ("r", "r+"):  # to write to the first ends the process
        tensor = torch.from_numpy(np.memmap(path, dtype=np.float32, mode=mode))
        for part in (tensor, tensor[2:]):
            assert t.live_leaves("inputs", [torch.ones(2), part]) == []
            t.poison(t.leaves(part))
    mapped.flush()
    assert path.read_bytes() == FLOATS.tobytes()


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_a_tensor_over_bytes_is_copied_and_one_over_an_array_of_its_own_is_written_as_an_input():
    data = FLOATS.tobytes()
    t.poison(t.leaves(torch.frombuffer(data, dtype=torch.float32)))
    assert data == FLOATS.tobytes()
    array = FLOATS.copy()
    t.put_back(t.live_leaves("inputs", torch.from_numpy(array)), [torch.zeros(6)])
    assert not array.any()


class Wrapper(torch.Tensor):
    """A class that holds other tensors, as quantized weights of a library do."""

    @staticmethod
    def __new__(cls, values, scale):
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=torch.float32)

    def __init__(self, values, scale):
        self.values8 = values
        self.scale = scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("nothing of it is computed to look at it")


def test_a_class_of_tensors_is_an_input_and_is_named_as_an_output():
    wrapped = Wrapper(torch.ones(2, dtype=torch.int8), torch.ones(1))
    assert [leaf.numel() for leaf in t.live_leaves("inputs", wrapped)] == [2, 1]
    with pytest.raises(RefusedError) as raised:
        t.leaves((torch.ones(1), wrapped))
    assert raised.value.finding.values == {"kind": "Wrapper", "output": 2}


def test_infinities_and_nan_have_to_be_at_the_same_places():
    scores = torch.ones(3, 3).masked_fill(torch.ones(3, 3).triu(1).bool(), -math.inf)
    assert g.agree([scores * (1 + 1e-6)], [scores]).ok
    assert not g.agree([scores.mT], [scores]).ok
    assert not g.agree([-scores], [scores]).ok
    assert g.agree([scores * math.nan], [scores * math.nan]).ok
    assert not g.agree([scores.nan_to_num(neginf=-1e38)], [scores]).ok


def test_what_is_wrong_is_said_with_its_place():
    right = torch.ones(4, 5)
    wrong = right.clone()
    wrong[2, 3] = 7
    found = g.located(g.agree([right, wrong], [right, right]), [right, wrong], [right, right])
    assert found.values["place"] == "output 2 of 2: element [2, 3]: 7, the baseline's 1"
    digests = t.leaves("one"), t.leaves("two")
    assert g.located(g.agree(*digests), *digests).values["place"] == ""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_an_element_is_held_to_its_own_value_and_to_the_rms_of_all(dtype):
    torch.manual_seed(0)
    reference = torch.randn(1 << 12).to(dtype)
    reference[:2048] *= 1e-4
    tolerance = g.tolerance_of(reference, reference)
    assert g.agree([reference * (1 + tolerance / 2)], [reference]).ok
    missing = reference.clone()
    missing[:2048] = 1e-9  # noise in the place of what was not computed
    assert g.agree([missing], [reference]).ok == (dtype == torch.bfloat16)
    hidden = torch.where(reference.abs() < tolerance / 10, 1e-12, reference)
    assert g.agree([hidden], [reference]).ok, "smaller than what rounding leaves is not told"
