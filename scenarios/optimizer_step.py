"""Optimizer step: update all parameters together, not one after the other.

An optimizer touches every parameter with a dozen cheap element-wise operations. Written as a loop, that is
a dozen calls for each tensor: thousands of tiny kernels that are over before the next one is launched.
`foreach` hands whole lists of tensors to each operation; `fused` does all operations of a tensor in one
pass, so that its memory is read and written once and not a dozen times.

On a GPU the loop is bound by launches and the gain is large for many small tensors. On a CPU there are no
launches: `foreach` saves only dispatching, `fused` saves memory traffic. With a few large tensors only the
traffic is left to save.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    roof="device memory",
    params={"layers": 48, "width": 1024},
    cpu={"layers": 24, "width": 256},
    smoke={"layers": 4, "width": 32},
    ladder=True,
    claim="1.25x (foreach) and 3.2-4.1x (fused) on a CPU, more on a GPU",
)
_PASSES = 7  # one fused pass reads parameter, gradient and both moments, and writes all but the gradient


@scenario.variant
def for_loop(lab, layers, width):
    """A Python loop over the tensors, a dozen operations for each."""
    return _adamw(lab, layers, width, foreach=False)


@scenario.variant
def foreach(lab, layers, width):
    """Each operation takes the whole list of tensors."""
    return _adamw(lab, layers, width, foreach=True)


@scenario.variant
def fused(lab, layers, width):
    """One pass over each tensor does all operations."""
    return _adamw(lab, layers, width, fused=True)


def _adamw(lab, layers, width, **how):
    shapes = [shape for _ in range(layers) for shape in ((width, width), (width,))]
    # As small as weights are: what a step adds to one of 5 would be lost in its rounding.
    parameters = [torch.nn.Parameter(torch.randn(shape, device=lab.device) / width**0.5) for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, **how)
    optimizer.step()  # makes the moments, which are part of the state
    before = [parameter.detach().clone() for parameter in parameters]
    elements = sum(parameter.numel() for parameter in parameters)
    return Work(
        optimizer.step,
        bytes=_PASSES * 4 * elements,
        dtype="fp32",
        items=elements,
        inputs=[parameter.grad for parameter in parameters],
        state=(parameters, optimizer),
        # What the step adds is compared, not the sum: it is a thousandth of a parameter, and would hide in it.
        output=lambda: ([now.detach() - then for now, then in zip(parameters, before, strict=True)], optimizer),
    )
