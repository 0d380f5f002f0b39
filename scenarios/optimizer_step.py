"""Optimizer step: update all parameters together, not one after the other.

**In short:** an update is many cheap operations on many tensors, so do all of a tensor, and all tensors, in few kernels.

```text
              tensor 1     tensor 2     tensor 3
for_loop      ▸▒▸▒▸▒▸▒     ▸▒▸▒▸▒▸▒     ▸▒▸▒▸▒▸▒
foreach       ▸▒▒▒▒▒▒▒▒▒▒▒▒▒▒ operation 1, all tensors
              ▸▒▒▒▒▒▒▒▒▒▒▒▒▒▒ operation 2, all tensors
              ...
fused         ▸█████████████ all operations, all tensors
              ▸ launch   ▒ a pass over memory
              █ one pass, in which everything is done
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `for_loop` | some ten calls for each tensor | baseline, 7.5 ms | the device waits for the host |
| `foreach` | each operation takes all tensors | 5.5x; 1.5-1.8x on a CPU | hundreds of launches are saved, on a CPU only Python |
| `fused` | one kernel does all operations | 17x; 4.7-6.0x on a CPU | 7 passes over memory in place of 20 |

## Two causes on a GPU

An optimizer touches every parameter with some ten element-wise operations: in a loop hundreds of
short kernels (768 on a GPU here). From `for_loop` to `foreach` launches are saved, and so are
starting and draining of those kernels. In the loop an H100 computed for 2.53 of 7 ms, with `foreach`
for 1.53 ms. So of the 5.3 ms that `foreach` saved, 1 ms was starting and draining.

From `foreach` to `fused` passes over memory are saved:

    fused: 28 bytes a parameter in fp32; the others: 80, where no cache keeps them

The 28 are the least: parameter, gradient and both moments are read, all but the gradient written.
Many small tensors gain most from `foreach`, few large ones from `fused`.

## On a CPU

`foreach` saves Python only: inside, each operation still goes from tensor to tensor. `fused` saves
those calls as well. They are most of its gain where the tensors are small and lie in a cache, as
here.

## What torch picks

`foreach` on a GPU, the loop on a CPU, and `fused` only when told. `foreach` needs memory for another
copy of the parameters while it runs, which `fused` does not.

Nothing is gained where the update is a small share of the step, as with large batches: forward and
backward grow with the batch, the update does not. No text of the course has figures for this: these
are our own measurements.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    roof="device memory",
    params={"layers": 48, "width": 1024},
    cpu={"layers": 16, "width": 64},
    smoke={"layers": 4, "width": 32},
    ladder=True,
    item="parameter",
    claim=(
        "our own measurement: 1.5-1.8x (foreach), 4.7-6.0x (fused) on a CPU; 5.5x, 17x on an H200"
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
