"""What a recording does not say of common operations of ATen: names of keywords, ranges of indices,
kinds of values.

The schemas are torch's, which this process does not import.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.features.from_trace.calls import RecordedInput


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _by_name(table: str) -> dict[str, tuple[str, ...]]:
    """Of lines such as "beta alpha: addmm addmm_", the words before the colon by each name after
    it.
    """
    rows = (line.split(":") for line in table.strip().splitlines())
    return {name: tuple(words.split()) for words, names in rows for name in names.split()}


KEYWORDS = _by_name("""
beta alpha: addmm addmm_ addmv addmv_ addr addr_ addbmm addbmm_ baddbmm baddbmm_
beta alpha use_gelu: _addmm_activation
alpha: add add_ sub sub_ rsub index_add index_add_ _add_relu
alpha: _foreach_add _foreach_add_ _foreach_sub _foreach_sub_
value: addcmul addcmul_ addcdiv addcdiv_
scale: _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
scale: _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
scale: _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
attn_mask scale: _scaled_dot_product_flash_attention_for_cpu
attn_mask scale: _scaled_dot_product_flash_attention_for_cpu_backward
scale enable_gqa: scaled_dot_product_attention
approximate: gelu gelu_ gelu_backward
sparse_grad: gather
memory_format: clone contiguous
generator: bernoulli bernoulli_ normal_ uniform_ random_ exponential_ multinomial
dtype: sum mean prod cumsum cumprod nansum
dtype layout device pin_memory non_blocking memory_format: _to_copy
include_self: scatter_reduce scatter_reduce_
correction keepdim: std var std_mean var_mean
lr beta1 beta2 weight_decay eps amsgrad maximize grad_scale found_inf: _fused_adam_ _fused_adamw_
weight_decay momentum lr dampening nesterov maximize is_first_step grad_scale found_inf: _fused_sgd_
""")
"""The arguments at the end that are given by name only."""
DTYPE_ARGUMENT = {"_softmax_backward_data": 3, "_log_softmax_backward_data": 3, "to": 1}
"""The position of one that is a dtype."""
LEFT_OUT = _names("layout device pin_memory memory_format generator")
"""Keywords whose recorded value is a number of torch's own; without them the operation does the
same.
"""
TEXT_KEYWORD = dict.fromkeys(("gelu", "gelu_", "gelu_backward"), "approximate")
"""Keywords with a text, which the profiler does not record."""
_FUSED_ARGUMENTS = {"_fused_adam_": 6, "_fused_adamw_": 6, "_fused_sgd_": 3}
_RUNNING_STATISTICS = _names(
    "native_batch_norm cudnn_batch_norm miopen_batch_norm _batch_norm_impl_index batch_norm"
)
CHANGED = {
    **{name: tuple(range(count)) for name, count in _FUSED_ARGUMENTS.items()},
    **dict.fromkeys(_RUNNING_STATISTICS, (3, 4)),
}
"""The positions of the arguments that an operation changes, where it is not the first alone of one
with a final _.
"""
WITHOUT_OUT = {
    **dict.fromkeys(_names("sqrt exp log neg abs sigmoid tanh rsqrt reciprocal"), 1),
    **dict.fromkeys(_names("mul div mm bmm mv cat eq ne lt le gt ge pow"), 2),
    **dict.fromkeys(_names("add sub"), 3),
    **dict.fromkeys(_names("sum mean"), 4),
    **dict.fromkeys(_names("addmm baddbmm"), 5),
}
"""How many arguments an operation has; one more tensor is `out`."""

UNRECORDED_LISTS = _names(
    "index index_put index_put_ _index_put_impl_ _unsafe_index _unsafe_index_put"
)
"""Their lists of optional tensors are not recorded."""
WAITING = _names("item _local_scalar_dense is_nonzero equal")
VIEWS = _names("""
view as_strided transpose t expand detach select slice reshape permute squeeze unsqueeze alias
split chunk unbind narrow empty empty_like empty_strided resize_ lift_fresh detach_ _unsafe_view
result_type unfold view_as expand_as flatten
""")
FACTORIES = _names("zeros ones full randn rand arange zeros_like ones_like full_like scalar_tensor")
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


def changed(name: str) -> Sequence[int]:
    """The positions of the arguments that an operation changes."""
    in_place = name.endswith("_") and not name.endswith("__")  # __and__ is not
    return CHANGED.get(name, (0,) if in_place else ())


def range_of_indices(name: str, position: int, inputs: tuple[RecordedInput, ...]) -> int | None:
    """Whole numbers of the argument lie below this: its indices, or 2 where any do. None where that
    is not known.
    """
    try:
        size = _index_size(name, position, inputs)
    except (IndexError, ValueError, TypeError):
        return None
    return size or (2 if name in _ANY_WHOLE else None)


def _index_size(name: str, position: int, inputs: tuple[RecordedInput, ...]) -> int | None:
    match name, position:
        case "embedding", 1:
            size = inputs[0].dims[0]
        case (("embedding_dense_backward" | "embedding_backward"), 1):
            size = int(inputs[2].value)
        case (
            (
                "nll_loss_forward"
                | "nll_loss2d_forward"
                | "nll_loss_nd"
                | "nll_loss"
                | "cross_entropy_loss"
            ),
            1,
        ):
            size = _classes(inputs[0].dims)
        case (("nll_loss_backward" | "nll_loss2d_backward"), 2):
            size = _classes(inputs[1].dims)
        case (
            (
                "index_select"
                | "gather"
                | "scatter"
                | "scatter_"
                | "scatter_add"
                | "scatter_add_"
                | "index_add_"
            ),
            2,
        ):
            size = inputs[0].dims[int(inputs[1].value)]
        case "max_pool2d_with_indices_backward", 7:
            size = inputs[1].dims[-1] * inputs[1].dims[-2]
        case _:
            return None
    return int(size)


def _classes(dims: list[int]) -> int:
    return dims[1] if len(dims) > 1 else dims[0]


def only_positive(name: str) -> bool:
    """Whether other numbers are outside of what it is defined for."""
    return any(word in name for word in _ONLY_POSITIVE)


def keeps_multiplying(name: str) -> bool:
    """Whether step after step would make its numbers vanish or overflow, unless the factor is 1."""
    return name in _MULTIPLY
