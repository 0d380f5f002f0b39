"""FLOPs of operations, and the bytes that they must move at least, from the shapes and types of
their inputs: a table of formulas, each with its source.

A multiplication and an addition are two FLOPs. Bytes are every input once and every output once,
whatever a kernel really moves; what is an input twice cannot be told from two inputs. Both are
derived, never counted. Outputs are not recorded: their sizes follow from the inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from gpulab.features.goodput.inputs import Inputs, Shape, Tensor

TORCH = "torch.utils.flop_counter"
DEFINITION = "counted from its definition, for each element"
"""Of a division, a root, an exponential one FLOP each."""
NO_ARITHMETIC = "moves bytes only"


class Work(NamedTuple):
    """The work of one call."""

    flops: int
    bytes: int


@dataclass(frozen=True)
class Formula:
    """`work` raises ValueError where the inputs do not have what it needs.

    The work belongs to the first operation `within` that does it, where there is one: its shapes
    say less. Where `outer`, it belongs to operations within that have a formula of their own.
    """

    work: Callable[[Inputs], Work]
    source: str
    outer: bool = False
    within: re.Pattern[str] | None = None


def formula_of(name: str) -> Formula | None:
    """That of an operation, or of the one that it is in place of: relu of relu_."""
    formula = FORMULAS.get(name)
    if formula is None and name.endswith("_"):
        return FORMULAS.get(name[:-1])
    return formula


def work_of(name: str, inputs: Inputs) -> Work | None:
    """By the formula of a name; None where it has none, or not all that it needs was recorded."""
    formula = formula_of(name)
    if formula is None:
        return None
    try:
        return formula.work(inputs)
    except (ValueError, IndexError):
        return None


def _product(flops: int, inputs: Inputs, places: Sequence[int], shape: Shape) -> Work:
    """Return the work of a product of factors, the output having the first one's type."""
    first = inputs.at(places[0])
    output = prod(shape) * first.element_bytes
    return Work(flops, inputs.bytes_at(*places) + output)


def _product_from(first: int) -> Callable[[Inputs], Work]:
    """Return the work of two factors from the place `first` on, the second a matrix or a vector;
    what is added to their product stands before them.
    """

    def work(inputs: Inputs) -> Work:
        left = inputs.at(first)
        *rows, _ = left.shape
        columns = inputs.at(first + 1).shape[1:][-1:]
        flops = 2 * left.count * prod(columns)
        return _product(flops, inputs, range(first + 2), (*rows, *columns))

    return work


def _linear(inputs: Inputs) -> Work:
    x = inputs.at(0).shape
    n, k = _sizes(inputs.at(1), 2)
    rows = prod(x[:-1])
    return _product(2 * rows * n * k, inputs, (0, 1, 2), (rows, n))


def _sizes(tensor: Tensor, count: int) -> Shape:
    """ValueError where it has another number of dimensions."""
    if len(tensor.shape) != count:
        raise ValueError(f"{len(tensor.shape)} dimensions where {count} were expected")
    return tensor.shape


def _convolution(inputs: Inputs) -> Work:
    """input, weight, bias, stride, padding, dilation, transposed, output padding, groups."""
    output = _convolved(inputs, x=0, weight=1, first=3)
    x, weight = inputs.at(0).shape, inputs.at(1).shape
    each = (x if inputs.flag(6) else output)[2:]
    flops = 2 * x[0] * prod(each) * prod(weight)
    return _product(flops, inputs, (0, 1, 2), output)


def _convolved(inputs: Inputs, *, x: int, weight: int, first: int) -> Shape:
    """The shape of the output; `first` is the place of the strides.

    torch.nn.Conv2d and torch.nn.ConvTranspose2d give the sizes. ValueError.
    """
    sizes, kernel = inputs.at(x).shape, inputs.at(weight).shape
    if len(sizes) != len(kernel) or len(sizes) < 3:
        raise ValueError("no batch of images")
    count = len(sizes) - 2
    steps = _each(inputs.numbers(first), count)
    paddings = _each(inputs.numbers(first + 1), count)
    dilations = _each(inputs.numbers(first + 2), count)
    transposed = inputs.flag(first + 3)
    more = _each(inputs.numbers(first + 4), count)
    (groups,) = inputs.numbers(first + 5)
    output = []
    for at in range(count):
        reach = dilations[at] * (kernel[2 + at] - 1)
        if transposed:
            size = (sizes[2 + at] - 1) * steps[at] - 2 * paddings[at] + reach + more[at] + 1
        else:
            size = (sizes[2 + at] + 2 * paddings[at] - reach - 1) // max(1, steps[at]) + 1
        output.append(size)
    channels = kernel[1] * groups if transposed else kernel[0]
    return (sizes[0], channels, *output)


def _each(numbers: Shape, count: int) -> Shape:
    """One for each dimension. ValueError."""
    if len(numbers) == 1:
        return numbers * count
    if len(numbers) != count:
        raise ValueError("not a number for each dimension")
    return numbers


def _convolution_backward(inputs: Inputs) -> Work:
    """gradient, input, weight, sizes of bias, stride, padding, dilation, transposed, output
    padding, groups, which of the three gradients are asked for.
    """
    gradient, x, weight = inputs.at(0), inputs.at(1), inputs.at(2)
    transposed = inputs.flag(7)
    mask = [
        word.strip() in ("True", "true", "1") for word in inputs.text(10).strip("[]").split(",")
    ]
    if len(mask) != 3:
        raise ValueError("not recorded which gradients are asked for")
    # torch counts the gradient of the weight as if there were no groups
    spatial = (x if transposed else gradient).shape[2:]
    each = 2 * x.shape[0] * prod(spatial) * prod(weight.shape)
    outputs = (x.count, weight.count, gradient.shape[1])
    written = sum(count for count, asked in zip(outputs, mask, strict=True) if asked)
    return Work(each * sum(mask[:2]), inputs.bytes_at(0, 1, 2) + written * x.element_bytes)


def _attention(first: int, *, backward: bool = False) -> Callable[[Inputs], Work]:
    """Query, key and value from the place `first` on, of batches and heads. Torch counts causal
    attention as if nothing were masked, and the backward pass as five products.
    """

    def work(inputs: Inputs) -> Work:
        query, key, value = (inputs.at(first + at) for at in range(3))
        batch, heads, rows, size = _sizes(query, 4)
        columns = _sizes(key, 4)[2]
        size_of_value = _sizes(value, 4)[3]
        by_key = 2 * batch * heads * rows * columns * size
        by_value = 2 * batch * heads * rows * columns * size_of_value
        output = batch * heads * rows * size_of_value * query.element_bytes
        read = query.bytes + key.bytes + value.bytes
        if backward:
            return Work(3 * by_key + 2 * by_value, 2 * (read + output))
        return Work(by_key + by_value, read + output)

    return work


def _elementwise(flops: int = 1, dtype: str = "") -> Callable[[Inputs], Work]:
    """So many FLOPs for each element of the output, which has the sizes of all inputs together."""

    def work(inputs: Inputs) -> Work:
        tensors = _some(inputs)
        count = prod(_broadcast([tensor.shape for tensor in tensors]))
        element_bytes = 1 if dtype == "bool" else _promoted(tensors)
        read = sum(tensor.bytes for tensor in tensors if tensor.shape)  # numbers are no tensors
        return Work(flops * count, read + count * element_bytes)

    return work


def _some(inputs: Inputs) -> list[Tensor]:
    """ValueError where there are none, or lists of them, whose types are not recorded."""
    if inputs.has_lists or not inputs.tensors:
        raise ValueError("no types of its tensors")
    return inputs.tensors


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    longest = max(map(len, shapes))
    padded = [(1,) * (longest - len(shape)) + shape for shape in shapes]
    return tuple(0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True))


def _promoted(tensors: Sequence[Tensor]) -> int:
    """Bytes of an element of the output: numbers with a point before whole ones, and what has
    dimensions before what has none.
    """
    ranks = [(tensor.is_floating, bool(tensor.shape), tensor.element_bytes) for tensor in tensors]
    return max(ranks)[2]


def _overwrite(inputs: Inputs) -> Work:
    """Overwrites the first input, which it does not read."""
    first = inputs.at(0)
    return Work(0, inputs.bytes_at(*range(1, len(inputs.all))) + first.bytes)


def _copy(inputs: Inputs) -> Work:
    """Return the work of a copy of the first input to one like it."""
    first = inputs.at(0)
    return Work(0, first.bytes + first.count * first.element_bytes)


def _dropout(inputs: Inputs) -> Work:
    """A product with a mask, which it writes too."""
    x = inputs.at(0)
    return Work(2 * x.count, x.bytes + x.count * (x.element_bytes + 1))


def _reduction(
    flops: int = 1, *, indices: int = 0, values: bool = True
) -> Callable[[Inputs], Work]:
    """Over the dimensions that the second input names, all of them where it names none; with so
    many bytes of indices.
    """

    def work(inputs: Inputs) -> Work:
        x = inputs.at(0)
        dims = _dims(inputs, 1, len(x.shape))
        kept = [size for dim, size in enumerate(x.shape) if dim not in dims]
        written = prod(kept) * (indices + values * x.element_bytes)
        return Work(flops * x.count, x.bytes + written)

    return work


def _dims(inputs: Inputs, place: int, count: int) -> set[int]:
    text = inputs.text(place)
    if text in ("", "[]", "None"):
        return set(range(count))
    return {dim % max(1, count) for dim in inputs.numbers(place)}


def _norm(inputs: Inputs) -> Work:
    """Over the dimensions that the third input names: the second is which norm."""
    x = inputs.at(0)
    dims = _dims(inputs, 2, len(x.shape))
    kept = [size for dim, size in enumerate(x.shape) if dim not in dims]
    return Work(2 * x.count, x.bytes + prod(kept) * x.element_bytes)


def _like_the_first(flops: int, inputs_read: int) -> Callable[[Inputs], Work]:
    """An output like the first input, of so many inputs, and so many FLOPs for each element."""

    def work(inputs: Inputs) -> Work:
        x = inputs.at(0)
        read = inputs.bytes_at(*range(inputs_read))
        return Work(flops * x.count, read + x.count * x.element_bytes)

    return work


def _layer_norm(inputs: Inputs) -> Work:
    """input, sizes of what is normalised, weight, bias; it writes mean and deviation, too."""
    x = inputs.at(0)
    rows = x.count // max(1, prod(inputs.numbers(1)))
    written = x.count * x.element_bytes + 2 * rows * _STATISTIC
    return Work(8 * x.count, inputs.bytes_at(0, 2, 3) + written)


def _layer_norm_backward(inputs: Inputs) -> Work:
    """gradient, input, sizes, mean, deviation, weight, bias."""
    x = inputs.at(1)
    read = inputs.bytes_at(0, 1, 3, 4, 5)
    return Work(13 * x.count, read + x.count * x.element_bytes + inputs.bytes_at(5, 6))


def _batch_norm(training_at: int) -> Callable[[Inputs], Work]:
    """input, weight, bias, running mean and variance; which are written in training, as are the
    batch's.
    """

    def work(inputs: Inputs) -> Work:
        x = inputs.at(0)
        moved = inputs.bytes_at(0, 1, 2, 3, 4) + x.count * x.element_bytes
        if not inputs.flag(training_at):
            return Work(4 * x.count, moved)
        channels = x.shape[1] if len(x.shape) > 1 else 1
        return Work(8 * x.count, moved + inputs.bytes_at(3, 4) + 2 * channels * _STATISTIC)

    return work


def _batch_norm_backward(inputs: Inputs) -> Work:
    """Two like the input, weight; then statistics."""
    x = inputs.at(0)
    read = inputs.bytes_at(0, 1, 2, 5, 6)
    return Work(13 * x.count, read + x.count * x.element_bytes + 2 * inputs.bytes_at(2))


def _group_norm(inputs: Inputs) -> Work:
    """input, weight, bias, batch, channels, size, groups."""
    x = inputs.at(0)
    (batch,), (groups,) = inputs.numbers(3), inputs.numbers(6)
    written = x.count * x.element_bytes + 2 * batch * groups * _STATISTIC
    return Work(8 * x.count, inputs.bytes_at(0, 1, 2) + written)


def _embedding(inputs: Inputs) -> Work:
    """table, indices: at most the whole table is read."""
    return _rows(inputs.at(0), inputs.at(1), dim=0)


def _index_select(inputs: Inputs) -> Work:
    """table, dimension, indices."""
    table = inputs.at(0)
    (dim,) = inputs.numbers(1)
    return _rows(table, inputs.at(2), dim=dim % max(1, len(table.shape)))


def _rows(table: Tensor, indices: Tensor, *, dim: int) -> Work:
    each = prod(size for at, size in enumerate(table.shape) if at != dim)
    written = indices.count * each * table.element_bytes
    return Work(0, min(written, table.bytes) + indices.bytes + written)


def _gather(inputs: Inputs) -> Work:
    """input, dimension, indices."""
    x, indices = inputs.at(0), inputs.at(2)
    written = indices.count * x.element_bytes
    return Work(0, min(written, x.bytes) + indices.bytes + written)


def _embedding_backward(inputs: Inputs) -> Work:
    """gradient, indices, rows of the table."""
    gradient = inputs.at(0)
    (rows,) = inputs.numbers(2)
    table = rows * gradient.shape[-1] * gradient.element_bytes
    return Work(gradient.count, inputs.bytes_at(0, 1) + table)


_STATISTIC = 4
"""Bytes of a mean or a deviation, which are kept in fp32."""
_CONVOLVES = re.compile(
    r"aten::(mkldnn_convolution|cudnn_convolution\w*|miopen_\w*convolution\w*|_?slow_conv\w+"
    r"|thnn_conv\w+|_?conv_depthwise\w+|_nnpack_spatial_convolution|convolution_overrideable)$"
)
_ATTENDS = re.compile(r"aten::_(flash|efficient|cudnn)_attention_(forward|backward)$")


def _table(
    work: Callable[[Inputs], Work],
    names: str,
    source: str = DEFINITION,
    *,
    outer: bool = False,
    within: re.Pattern[str] | None = None,
) -> dict[str, Formula]:
    formula = Formula(work, source, outer, within)
    return {f"aten::{name}": formula for name in names.split()}


FORMULAS: Mapping[str, Formula] = {
    **_table(_product_from(0), "mm bmm _int_mm _scaled_mm", TORCH),
    **_table(_product_from(1), "addmm baddbmm _addmm_activation", TORCH),
    **_table(_linear, "linear", TORCH, outer=True),
    **_table(_product_from(0), "mv dot vdot"),
    **_table(_product_from(1), "addmv"),
    **_table(_convolution, "convolution _convolution", TORCH, within=_CONVOLVES),
    **_table(_convolution_backward, "convolution_backward", TORCH),
    **_table(
        _attention(0),
        "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_fused_attention_overrideable",
        TORCH,
        within=_ATTENDS,
    ),
    **_table(
        _attention(1, backward=True),
        "_scaled_dot_product_flash_attention_backward "
        "_scaled_dot_product_efficient_attention_backward "
        "_scaled_dot_product_cudnn_attention_backward "
        "_scaled_dot_product_flash_attention_for_cpu_backward "
        "_scaled_dot_product_fused_attention_overrideable_backward",
        TORCH,
        within=_ATTENDS,
    ),
    **_table(
        _elementwise(),
        "add sub rsub mul div neg abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal "
        "pow square sin cos tan tanh sigmoid erf floor ceil round trunc sign relu maximum minimum "
        "fmod remainder atan2 hypot clamp clamp_min clamp_max hardtanh threshold "
        "threshold_backward logical_and logical_or logical_not bitwise_and bitwise_or "
        "bitwise_xor bitwise_not floor_divide",
    ),
    **_table(_elementwise(dtype="bool"), "eq ne lt le gt ge isnan isinf isfinite"),
    **_table(_elementwise(2), "addcmul addcdiv lerp leaky_relu leaky_relu_backward"),
    **_table(_elementwise(2), "sigmoid_backward tanh_backward elu softplus"),
    **_table(_elementwise(4), "silu gelu hardswish mish"),
    **_table(_elementwise(7), "silu_backward gelu_backward"),
    **_table(_elementwise(0), "where masked_fill", NO_ARITHMETIC),
    **_table(_overwrite, "copy_ fill_ zero_ normal_ uniform_ random_", NO_ARITHMETIC),
    **_table(_copy, "clone flip roll tril triu", NO_ARITHMETIC, outer=True),
    **_table(_dropout, "native_dropout"),
    **_table(_reduction(), "sum prod amax amin"),
    **_table(_reduction(), "mean", outer=True),
    **_table(_reduction(indices=8), "max min"),
    **_table(_reduction(indices=8, values=False), "argmax argmin"),
    **_table(_reduction(4), "var std"),
    **_table(_norm, "linalg_vector_norm"),
    **_table(_like_the_first(1, 1), "cumsum cumprod"),
    **_table(_like_the_first(5, 1), "_softmax _log_softmax"),
    **_table(_like_the_first(4, 2), "_softmax_backward_data _log_softmax_backward_data"),
    **_table(_layer_norm, "native_layer_norm"),
    **_table(_layer_norm_backward, "native_layer_norm_backward"),
    **_table(_batch_norm(5), "native_batch_norm cudnn_batch_norm miopen_batch_norm"),
    **_table(_batch_norm_backward, "native_batch_norm_backward cudnn_batch_norm_backward"),
    **_table(_group_norm, "native_group_norm"),
    **_table(_embedding, "embedding", NO_ARITHMETIC, outer=True),
    **_table(_index_select, "index_select", NO_ARITHMETIC),
    **_table(_gather, "gather", NO_ARITHMETIC),
    **_table(_embedding_backward, "embedding_dense_backward"),
}
"""By the name of the operation in a recording."""
