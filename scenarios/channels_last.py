"""Channels last: give a convolution the layout that its kernel works in.

Images are stored as batch, channels, height, width, so that the channels of one pixel lie a whole
image apart. A convolution sums over channels at every pixel, and most kernels want those side by
side. With the usual layout the library reorders on the way in and out, or takes a slower kernel;
`channels_last` keeps the shape and changes the strides. Set it for the input and for the weights:
with only one of them the other is reordered on every call.

On a GPU the step is in fp16, which tensor cores multiply. An H100 ran the very same kernel for both
layouts, in 91 us; with channels first two more kernels reordered the input and the weights (49 us
together) and one the output (55 us). That is 2.1x on the device's clock, and 1.85x for steps one
after the other (204 and 110 us). It depends on the sizes: the reordering is memory traffic, and
counts for less where there is more arithmetic for each byte. More channels and larger filters gain
less, few channels gain more.

In fp32 a GPU's convolutions are TF32 by default, at half the rate and with twice the bytes, so much
the same holds (`cold_start` shows the reordering). On a CPU expect little: its library has blocked
layouts of its own, into which it reorders both. An operation without support for the layout, in the
middle of a model, pays the reordering twice: by itself it can cost more than the layout gains. What
to look at: the names of the kernels in the table of operations, such as nchwToNhwcKernel.
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
