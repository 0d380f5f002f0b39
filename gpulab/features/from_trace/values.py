"""What neither a recording nor a schema says of common operations of ATen: which compute nothing,
ranges of indices, kinds of values.
"""

from __future__ import annotations

from contextlib import suppress

from gpulab.features.from_trace.calls import RecordedInput


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


WAITING = _names("item _local_scalar_dense is_nonzero equal")
VIEWS = _names("""
view as_strided transpose t expand detach select slice reshape permute squeeze unsqueeze alias
split chunk unbind narrow empty empty_like empty_strided resize_ lift_fresh detach_ _unsafe_view
result_type unfold view_as expand_as flatten
""")
FACTORIES = _names("zeros ones full randn rand arange zeros_like ones_like full_like scalar_tensor")
_BATCH_NORMS = _names(
    "native_batch_norm cudnn_batch_norm miopen_batch_norm _batch_norm_impl_index batch_norm"
)
RUNNING_STATISTICS = dict.fromkeys(_BATCH_NORMS, (3, 4))
"""The positions of arguments that they change, which their schemas do not say."""
_ANY_WHOLE = _names("""
add add_ sub sub_ rsub mul mul_ neg abs sign minimum maximum clamp clamp_ eq ne lt le gt ge where
masked_fill masked_fill_ copy_ _to_copy to clone cat stack sum mean max min amax amin argmax
argmin any all cumsum cumsum_ sort topk zero_ fill_ bitwise_and bitwise_or bitwise_xor bitwise_not
logical_and logical_or logical_not contiguous repeat flip roll tril triu isfinite isnan div
floor_divide remainder nonzero masked_select _foreach_add_ _foreach_copy_ argsort unique
""")
"""They take whole numbers of any value."""
_ONLY_POSITIVE = _names("""
log sqrt rsqrt pow reciprocal batch_norm bernoulli addcdiv adam binary_cross
""")
"""Parts of the names of those that are defined for positive numbers only."""
_MULTIPLY = _names("mul_ div_ _foreach_mul_ _foreach_div_")
_EMBEDDING_BACKWARD = _names("embedding_dense_backward embedding_backward")
_LOSSES = _names("nll_loss_forward nll_loss2d_forward nll_loss_nd nll_loss cross_entropy_loss")
_LOSSES_BACKWARD = _names("nll_loss_backward nll_loss2d_backward")
_INDEXING = _names("index_select gather scatter scatter_ scatter_add scatter_add_ index_add_")


def range_of_indices(name: str, position: int, inputs: tuple[RecordedInput, ...]) -> int | None:
    """Whole numbers of the argument lie below this: its indices, or 2 where any do. None where that
    is not known.
    """
    size = None
    with suppress(IndexError, ValueError, TypeError):
        size = _index_size(name, position, inputs)
    return size or (2 if name in _ANY_WHOLE else None)


def _index_size(name: str, position: int, inputs: tuple[RecordedInput, ...]) -> int | None:
    if name == "embedding" and position == 1:
        return int(inputs[0].dims[0])
    if name in _EMBEDDING_BACKWARD and position == 1:
        return int(inputs[2].value)
    if name in _LOSSES and position == 1:
        return int(inputs[0].dims[:2][-1])
    if name in _LOSSES_BACKWARD and position == 2:
        return int(inputs[1].dims[:2][-1])
    if name in _INDEXING and position == 2:
        return int(inputs[0].dims[int(inputs[1].value)])
    if name == "max_pool2d_with_indices_backward" and position == 7:
        return int(inputs[1].dims[-1] * inputs[1].dims[-2])
    return None


def only_positive(name: str) -> bool:
    """Return whether other numbers are outside of what it is defined for."""
    return any(word in name for word in _ONLY_POSITIVE)


def keeps_multiplying(name: str) -> bool:
    """Return whether repeated steps make its numbers vanish or overflow, if the factor is not 1."""
    return name in _MULTIPLY
