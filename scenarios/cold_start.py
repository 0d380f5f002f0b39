"""Cold start: a process's first steps set things up, so do not average them in.

**In short:** the first steps of a process pay for set-up, so time the later ones, and say what the first ones cost.

```text
          time ──────────────────────────────────────────────▶
eager     ░ █████████████████████▓▌▌▌▌▌▌▌▌▌▌▌
            step 1, 206 ms        step 5 and later, 0.24 ms
warmed    ░░░░░░░░░░░░░░░░░░░░░░░ ▓▌▌▌▌▌▌▌▌▌▌
          build, 289 ms           step 1, 0.65 ms
compiled  ░░░░░░░░░░ ... ░ ██████████ ... █▓▌▌▌▌▌▌▌▌▌
          build, 5.5 s     step 1, 4.2 s
          ░ build   █ step 1   ▓ the next few   ▌ settled
          an H200, not to scale
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `eager` | nothing is set up before step 1 | baseline: 206 ms, from step 5 on 0.24 ms | step 1 loads kernels, makes handles and takes memory |
| `warmed` | the build takes three steps | step 1 in 0.65 ms, after a build of 289 ms | the same set-up, where nobody waits for it |
| `compiled` | `torch.compile`, without a cache on disk | step 1 in 4.2 s, then as `eager` | step 1 also traces, generates and compiles code |

## What the first step does

The result is a curve: each of the first steps of a fresh process is timed by itself, over several
processes, until the time settles.

On a GPU the first step loads the code of every kernel (function on the GPU) that it launches. It
creates the handles and workspaces of cuBLAS and cuDNN, and lets cuDNN choose its algorithms. It
takes memory from the driver with `cudaMalloc`, which PyTorch's allocator keeps. The CUDA context
is made before the build and is not shown.

On a CPU oneDNN generates code for each shape of a convolution, and pages of memory are touched for
the first time.

## Why a mean is wrong

    (206 ms + 99 * 0.24 ms) / 100 = 2.3 ms, which no step takes

So drop the first steps until the time settles, or take the median of many. What is not measured is
still paid: by the first request after a deployment, and by every job that runs for a minute.

## What helps

A warm-up moves the cost, as a server does before it accepts requests, and saves nothing. It has to
use the shapes of the later steps, since new shapes are set up anew. Three things save time: a
compiler cache on disk that is kept between starts, compiling ahead of time (AOTInductor), and one
long-lived process for many jobs.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    shows="curve",
    params={"batch": 32, "channels": 64, "pixels": 64},
    cpu={"batch": 4, "channels": 32, "pixels": 32},
    smoke={"batch": 1, "channels": 4, "pixels": 8},
    env={
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
        # else it compiles test programs, to see what the CPU can do
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
    },
    item="image",
    claim="performance basics: the first steps are slow, so leave them out",
    terms=("warm-up", "first step", "startup"),
)
_CLASSES, _WARM_UP_STEPS = 10, 3


@scenario.variant
def eager(lab, batch, channels, pixels):
    """Eager PyTorch, timed from its very first step."""
    return _work(lab, *_model_and_images(lab, batch, channels, pixels))


@scenario.variant
def warmed(lab, batch, channels, pixels):
    """The build takes three steps beforehand."""
    work = _work(lab, *_model_and_images(lab, batch, channels, pixels))
    for _ in range(_WARM_UP_STEPS):
        work.step()
    return work


@scenario.variant(needs=("compiler",))
def compiled(lab, batch, channels, pixels):
    """torch.compile: the build loads it, and the first step compiles."""
    model, images = _model_and_images(lab, batch, channels, pixels)
    return _work(lab, torch.compile(model), images)


def _model_and_images(lab, batch, channels, pixels):
    """A small network for images: convolutions, pooling, and a matmul."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, channels, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(channels, channels, 3, stride=2, padding=1),
        torch.nn.GELU(),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * channels, _CLASSES),
    )
    model = model.to(lab.device).requires_grad_(False)
    return model, torch.randn(batch, 3, pixels, pixels, device=lab.device)


def _work(lab, model, images):
    def step():
        with lab.useful():
            return model(images)

    return Work(
        step,
        # cuDNN's convolutions are in TF32 by default
        dtype="tf32" if lab.device.type == "cuda" else "fp32",
        items=len(images),
        inputs=(images, list(model.parameters())),
    )
