"""Optimizer step: update all parameters together, not one after the other.

An optimizer touches every parameter with some ten cheap element-wise operations. Written as a loop,
that is ten calls for each tensor: hundreds of short kernels here (768 on a GPU), each launched by a
call of its own. `foreach` hands whole lists of tensors to each operation, so the arithmetic is ten
calls for all (the rest of its count reads the step number of each tensor); `fused` does all
operations of a tensor in one kernel, so that its memory is read and written once: 7 passes over
memory in place of 20.

On a GPU the variants separate two causes. From `for_loop` to `foreach` launches are saved, and so
are starting and draining of hundreds of short kernels; from `foreach` to `fused` passes over memory
are saved. On a CPU `foreach` saves Python only: inside, each operation still goes from tensor to
tensor. `fused` saves those calls as well, and they are most of its gain where the tensors are small
and lie in a cache, as here. The least a step can move is 28 bytes a parameter in fp32 (it reads
parameter, gradient and both moments, and writes all but the gradient): that is `fused`. The
operations of the others move 80 bytes, where no cache keeps them. So on a GPU many small tensors
gain most from `for_loop` to `foreach`, few large ones from `foreach` to `fused`.

No text of the course has figures for this: those beside the result are our own measurements. In the
loop an H100 computed for 2.53 of 7 ms and waited for launches otherwise, with `foreach` for 1.53
ms. So of the 5.3 ms that `foreach` saved, 1 ms was starting and draining.

Nothing is gained where the update is a small share of the step, as with large batches: forward and
backward grow with the batch, the update does not.

Torch picks `foreach` on a GPU and the loop on a CPU, and `fused` only when told. `foreach` needs
memory for another copy of the parameters while it runs, which `fused` does not.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    roof="device memory",
    params={"layers": 48, "width": 1024},
    cpu={"layers": 32, "width": 64},
    smoke={"layers": 4, "width": 32},
    ladder=True,
    item="parameter",
    claim=(
        "our own measurement: 1.5-1.8x (foreach), 4.7-5.2x (fused) on a CPU; 5.5x, 17x on an H200"
    ),
    terms=("adam", "foreach", "multi-tensor"),
)
# Tensors read and written. One by one: mul_ 2, lerp_ 3, mul_ 2, addcmul_ 3, sqrt 2, div 2, add_ 2,
# addcdiv_ 4. Fused: parameter, gradient and both moments are read, and all but the gradient
# written.
_PASSES, _FUSED_PASSES = 20, 7


@scenario.variant
def for_loop(lab, layers, width):
    """A Python loop over the tensors, some ten operations for each."""
    return _adamw(lab, layers, width, _PASSES, foreach=False)


@scenario.variant
def foreach(lab, layers, width):
    """Each operation takes the whole list of tensors."""
    return _adamw(lab, layers, width, _PASSES, foreach=True)


@scenario.variant
def fused(lab, layers, width):
    """One pass over each tensor does all operations."""
    return _adamw(lab, layers, width, _FUSED_PASSES, fused=True)


def _adamw(lab, layers, width, passes, **how):
    shapes = [shape for _ in range(layers) for shape in ((width, width), (width,))]
    # As small as weights are: what a step adds to one of 5 would be lost in its rounding.
    parameters = [
        torch.nn.Parameter(torch.randn(shape, device=lab.device) / width**0.5) for shape in shapes
    ]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, **how)
    optimizer.step()  # makes the moments, which are part of the state
    elements = sum(parameter.numel() for parameter in parameters)
    return Work(
        optimizer.step,
        bytes=passes * 4 * elements,
        dtype="fp32",
        items=elements,
        inputs=[parameter.grad for parameter in parameters],
        state=(parameters, optimizer),
        output=(parameters, optimizer),
    )
