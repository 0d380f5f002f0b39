"""Channels last: give a convolution the layout that its kernel works in.

**In short:** most convolution kernels want the channels of a pixel side by side; store them so, and nothing is reordered.

```text
                time on the device (an H100) ──────────────▶
channels_first  ▒▒▒▒▒▒▒▒▒▒ ██████████████████ ▒▒▒▒▒▒▒▒▒▒▒
                49 us      91 us              55 us
channels_last   ██████████████████
                91 us
                ▒ reorders input and weights, then the output
                █ the convolution: the very same kernel
```

| variant | what changes | expected (H100) | why |
|---|---|---|---|
| `channels_first` | the default layout, NCHW | baseline, 204 us for steps in a row | three kernels more, which only move numbers |
| `channels_last` | input and weights in NHWC | 1.85x, 110 us; 2.1x by the device's clock | the kernel reads them as they are |

## What the layout is

Images are stored as batch, channels, height, width: the channels of one pixel lie a whole image
apart. A convolution sums over channels at every pixel. `channels_last` keeps the shape and changes
the strides. Set it for the input and for the weights: with only one of them the other is reordered
on every call.

On a GPU the step is in fp16, which tensor cores multiply. In fp32 a GPU's convolutions are TF32 by
default, at half the rate and with twice the bytes, so much the same holds (`cold_start` shows the
reordering).

## Where it gains less

The reordering is memory traffic, and counts for less where there is more arithmetic for each byte.
More channels and larger filters gain less, few channels gain more.

On a CPU expect little: its library has blocked layouts of its own, into which it reorders both. An
operation without support for the layout, in the middle of a model, pays the reordering twice. By
itself it can cost more than the layout gains.

## What to look at

The names of the kernels in the table of operations, such as `nchwToNhwcKernel`.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="matrix",
    params={"batch": 64, "channels": 128, "size": 56},
    cpu={"batch": 2, "channels": 32, "size": 56},
    smoke={"batch": 1, "channels": 8, "size": 16},
    item="image",
    no_effect_reason="the library works in a layout of its own, and reorders both alike",
    claim="our own measurement: 2.1x on the device clock of an H100, 1.85x sustained (fp16)",
    terms=("nhwc", "convolution", "conv2d", "cudnn"),
)


@scenario.variant
def channels_first(lab, batch, channels, size):
    """The default layout, NCHW."""
    return _convolution(lab, batch, channels, size, torch.contiguous_format)


@scenario.variant
def channels_last(lab, batch, channels, size):
    """Input and weights in NHWC order; shapes stay as they are."""
    return _convolution(lab, batch, channels, size, torch.channels_last)


def _convolution(lab, batch, channels, size, layout):
    dtype = torch.float16 if lab.device.type == "cuda" else torch.float32
    images = (
        torch.randn(batch, channels, size, size, device=lab.device)
        .to(dtype)
        .to(memory_format=layout)
    )
    weight = (
        torch.randn(channels, channels, 3, 3, device=lab.device).to(dtype).to(memory_format=layout)
    )
    weight /= 3 * channels**0.5

    @torch.no_grad()
    def step():
        return torch.nn.functional.conv2d(images, weight, padding=1)

    return Work(
        step,
        flops=2 * images.numel() * channels * 9,
        bytes=2 * images.nbytes + weight.nbytes,
        dtype="fp16" if dtype == torch.float16 else "fp32",
        items=batch,
        inputs=(images, weight),
    )
