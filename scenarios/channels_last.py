"""Channels last: give a convolution the layout that its kernel works in.

Images come as batch, channels, height, width, so that the channels of one pixel lie a whole image apart. A
convolution sums over channels at every pixel, and most kernels want those side by side. With the usual
layout the library reorders on the way in and out, or takes a slower kernel; `channels_last` keeps the shape
and changes the strides, and must be set for the input and for the weights.

The gain depends on who reorders: with tensor cores and half precision it is large, in fp32 and on a CPU
(whose library has blocked layouts of its own) small. One operation without support for the layout, in the
middle of a model, pays the reordering twice and takes it all back.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="matrix",
    params={"batch": 64, "channels": 128, "size": 56},
    cpu={"batch": 2, "channels": 32, "size": 56},
    smoke={"batch": 1, "channels": 8, "size": 16},
    claim="8-35 % for convolutions in half precision on tensor cores",
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
    images = torch.randn(batch, channels, size, size, device=lab.device).to(dtype).to(memory_format=layout)
    weight = torch.randn(channels, channels, 3, 3, device=lab.device).to(dtype).to(memory_format=layout)
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
