"""Whether an output is the baseline's: by its norm, and element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, sqrt

import torch

from gpulab.core.findings import Finding
from gpulab.engine.build.tensors import chunks, wide
from gpulab.engine.rounding import OF_ELEMENT, PRECISION, TOLERANCE, Difference
from gpulab.features.checks.findings import (
    element_counts_differ,
    elements_differ,
    one_element_off,
    output_has_nan,
    relative_error,
    shapes_differ,
)

_DTYPES = {getattr(torch, name): precision for name, precision in PRECISION.items()}
_LARGEST_ERROR = 1e9
"""Beyond it an error says nothing but that the values are others, such as what memory held
before.
"""
_MANY = 17
"""From so many tensors on they are compared in one call; but for what underflows when squared:"""
_TINY = 1e-15


Sizes = dict[tuple[int, int], float]
"""The largest norms of outputs of few elements, by their place and number of elements."""


def learn(sizes: Sizes, reference: Sequence[torch.Tensor]) -> None:
    """Keep how large an output is for any values: where one value is near zero by chance, as a mean
    of random numbers, what is left of it is rounding. It was called wrong in 2 of 7 runs.
    """
    for place, tensor in enumerate(reference):
        if 0 < tensor.numel() <= 64 and tolerance_of(tensor, tensor):
            size = float(torch.linalg.vector_norm(wide(tensor).nan_to_num(0.0, 0.0, 0.0)))
            key = place, tensor.numel()
            sizes[key] = max(size, sizes.get(key, 0.0))


@dataclass(frozen=True)
class Agreement:
    """A comparison of an output with its reference; `error` is the relative Frobenius error (None:
    not comparable).

    `tensor` is the place of the one that disagrees, or that agrees least.
    """

    ok: bool
    error: float | None = None
    tolerance: float = 0.0
    reason: Finding | None = None
    tensor: int = 0


def tolerance_of(
    output: torch.Tensor, reference: torch.Tensor, dtypes: Sequence[str | None] = ()
) -> float:
    """The loosest tolerance of the reference and of the dtypes declared; 0 where both are integers.

    A lower precision that an output has and nobody declared is held to that of the reference.
    """
    own = _DTYPES.get(output.dtype)
    names = [_DTYPES.get(reference.dtype)]
    if not any((own, *names)):
        return 0.0
    if not any(names):
        names.append(own)
    return max(TOLERANCE.get(name, 0.0) for name in (*names, *dtypes) if name)


def cap_of(
    output: torch.Tensor, reference: torch.Tensor, dtypes: Sequence[str | None] = ()
) -> float:
    """The largest tolerance that may be named for them."""
    default = tolerance_of(output, reference, dtypes)
    # of whole numbers, which are equal unless one is named; and of what is computed in int8
    integers = 5e-2 if not default or "int8" in dtypes else 0.0
    # `Work(tolerance=)` may be ten times that of the dtype, and no more than a tenth
    return max(default, min(10 * default, 0.1), integers)


def agree(
    output: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
    *,
    tolerance: float | None = None,
    dtypes: Sequence[str | None] = (),
    widened: float = 0.0,
    sizes: Sizes | None = None,
) -> Agreement:
    """Compare in float64, tensor by tensor; as one run of numbers where the two are cut up
    differently.

    `tolerance` replaces that of the dtypes, up to its cap; floats are given no less than `widened`.
    An error is relative to the reference, or to what `sizes` says of it.
    """
    if len(output) != len(reference):
        output = _joined(output)
        reference = _joined(reference)
    at_once = _agree_at_once(output, reference, dtypes) if tolerance is None else {}
    agreements = [*at_once.values()]
    for place, (actual, expected) in enumerate(zip(output, reference, strict=True)):
        if place in at_once:
            continue
        reason = _other_shape(actual, expected)
        if reason is not None:
            return Agreement(False, reason=reason, tensor=place)
        if tolerance is None:
            allowed = tolerance_of(actual, expected, dtypes)
        else:
            allowed = min(tolerance, cap_of(actual, expected, dtypes))
        if tolerance_of(actual, expected):
            allowed = max(allowed, widened)
        size = (sizes or {}).get((place, expected.numel()), 0.0)
        agreement = replace(_agree(*_flat(actual, expected), allowed, size), tensor=place)
        if not agreement.ok:
            return agreement
        agreements.append(agreement)
    return max(agreements, key=lambda agreement: (agreement.error or 0.0, agreement.tolerance))


def error_of(output: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]) -> float:
    """The largest relative Frobenius error of an output's floats; infinite where there is none."""
    if [tensor.numel() for tensor in output] != [tensor.numel() for tensor in reference]:
        return inf
    errors = []
    for actual, expected in zip(output, reference, strict=True):
        if tolerance_of(actual, expected):
            agreement = _agree(*_flat(actual, expected), _LARGEST_ERROR)
            errors.append(inf if agreement.error is None else agreement.error)
    return max(errors, default=inf)


def located(
    agreement: Agreement, output: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]
) -> Finding | None:
    """The reason of a disagreement, with the output and the element that is worst."""
    reason = agreement.reason
    if reason is None or len(output) != len(reference):
        return reason
    place = [f"output {agreement.tensor + 1} of {len(output)}"] if len(output) > 1 else []
    actual = output[agreement.tensor]
    expected = reference[agreement.tensor]
    if _other_shape(actual, expected) is None:
        of_its_own = 0.0
        if reason.code == one_element_off.code:
            of_its_own = OF_ELEMENT * agreement.tolerance
        worst = _worst(actual.reshape(-1), expected.reshape(-1), of_its_own)
        if expected.dim():
            index = torch.unravel_index(torch.tensor(worst), expected.shape)
            place.append(f"element {list(map(int, index))}")
        values = [tensor.reshape(-1)[worst].item() for tensor in (actual, expected)]
        # a larger whole number tells nobody anything: it may stand for a text
        if not any((isinstance(value, int) and abs(value) >= 1 << 53) for value in values):
            place.append("{}, the baseline's {}".format(*map(_text, values)))
    return Finding(
        code=reason.code,
        variant=reason.variant,
        values={**reason.values, "place": ": ".join(place)},
    )


def _worst(actual: torch.Tensor, expected: torch.Tensor, of_its_own: float) -> int:
    """The place of the element that is off by most, beyond a part of its own value."""
    worst = 0
    most = -inf
    start = 0
    for own, other in chunks(actual, expected):
        if own.dtype == other.dtype and not (own.is_floating_point() or own.is_complex()):
            beyond = (own != other).double()
        else:
            beyond = _differences(wide(own), wide(other)) - of_its_own * wide(other).abs()
            beyond = beyond.nan_to_num(nan=inf, posinf=inf)
        place = int(beyond.argmax())
        if float(beyond[place]) > most:
            most = float(beyond[place])
            worst = start + place
        start += own.numel()
    return worst


def _text(value: bool | int | float | complex) -> str:
    return f"{value:.6g}" if isinstance(value, (float, complex)) else str(value)


def _other_shape(actual: torch.Tensor, expected: torch.Tensor) -> Finding | None:
    """Return what is wrong with a shape: other elements, or a dimension is lost that is not 1."""
    if actual.numel() != expected.numel():
        return element_counts_differ(elements=actual.numel(), baseline=expected.numel())
    own = [size for size in actual.shape if size != 1]
    others = [size for size in expected.shape if size != 1]
    if own == others or len(own) > len(others):
        return None
    return shapes_differ(shape=str(list(actual.shape)), baseline=str(list(expected.shape)))


def _flat(actual: torch.Tensor, expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both as one row, as they lie in memory where they lie alike: copies in another order took a
    GPU as long as a block, which counted as time that the variant left behind its blocks.
    """
    if actual.shape == expected.shape and actual.stride() == expected.stride():
        dims = sorted(range(actual.dim()), key=actual.stride, reverse=True)
        actual = actual.permute(dims)
        expected = expected.permute(dims)
    return actual.reshape(-1), expected.reshape(-1)


def _agree_at_once(
    output: Sequence[torch.Tensor], reference: Sequence[torch.Tensor], dtypes: Sequence[str | None]
) -> dict[int, Agreement]:
    """Compare the fp32 tensors of each device in one call; return, by place, those that agree to
    rounding: to 1e-5 of all of it, and each element to what one of a small value may be off by.
    """
    groups: dict[torch.device, list[int]] = {}
    for place, (actual, expected) in enumerate(zip(output, reference, strict=True)):
        alike = actual.device == expected.device and actual.shape == expected.shape
        if alike and actual.dtype == expected.dtype == torch.float32:
            groups.setdefault(expected.device, []).append(place)
    agreements: dict[int, Agreement] = {}
    for places in groups.values():
        if len(places) < _MANY:
            continue
        expected_ones = [reference[place] for place in places]
        differences = torch._foreach_sub([output[place] for place in places], expected_ones)
        norms = (
            torch._foreach_norm(expected_ones),
            torch._foreach_norm(differences),
            torch._foreach_norm(differences, inf),
        )
        sizes = torch.stack([torch.stack(each) for each in norms]).T.tolist()
        tolerance = tolerance_of(expected_ones[0], expected_ones[0], dtypes)
        for place, (size, apart, largest) in zip(places, sizes, strict=True):
            rms = size / sqrt(reference[place].numel() or 1)
            # the error of results that only differ in the order of their sums, of no tiny ones
            if apart <= 1e-5 * size and largest <= tolerance * rms and size > _TINY:
                agreements[place] = Agreement(True, apart / size, tolerance)
    return agreements


def _joined(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    if not tensors:
        return [torch.empty(0)]
    device = tensors[0].device
    return [torch.cat([tensor.reshape(-1).to(device) for tensor in tensors])]


def _agree(
    actual: torch.Tensor, expected: torch.Tensor, tolerance: float, size: float = 0.0
) -> Agreement:
    if not tolerance and actual.dtype == expected.dtype:
        # Integers are not compared in float64: above 2^53 it cannot tell them apart.
        differ = sum(int((a != b).sum()) for a, b in chunks(actual, expected))
        reason = elements_differ(differ=differ, elements=actual.numel()) if differ else None
        return Agreement(not differ, None if differ else 0.0, 0.0, reason)
    if (
        actual.dtype == expected.dtype
        and actual.device == expected.device
        and torch.equal(actual, expected)
    ):
        return Agreement(True, 0.0, tolerance)  # a tenth of the time of the passes below, on a CPU
    squares = total = largest = 0.0
    for narrow in chunks(actual, expected):
        a, b = map(wide, narrow)
        difference = _differences(a, b)
        finite = torch.where(torch.isfinite(b), b.abs(), 0.0)
        beyond = difference - OF_ELEMENT * tolerance * finite
        sums = torch.stack((difference.square().sum(), finite.square().sum(), beyond.max()))
        chunk_squares, chunk_total, chunk_largest = sums.tolist()
        if isnan(chunk_squares):
            return Agreement(False, None, tolerance, output_has_nan())
        squares += chunk_squares
        total += chunk_total
        largest = max(largest, chunk_largest)
    apart = Difference(squares, max(total, size**2), largest, actual.numel())
    error = apart.error
    if not error <= tolerance:
        bounded = error if error <= _LARGEST_ERROR else None
        return Agreement(
            False, bounded, tolerance, relative_error(error=bounded, allowed=tolerance)
        )
    if not apart.agrees(tolerance):
        allowed = apart.beyond_allowed(tolerance)
        return Agreement(False, error, tolerance, one_element_off(largest=largest, allowed=allowed))
    return Agreement(True, error, tolerance)


def _differences(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Nothing where both are the same infinity, or NaN."""
    equal = (a == b) | (torch.isnan(a) & torch.isnan(b))
    return torch.where(equal, 0.0, (a - b).abs())
