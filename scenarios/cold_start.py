"""Cold start: a process's first steps set things up, so do not average them in.

The result is a curve: each of the first steps of a fresh process is timed by itself, over several
processes, until the time settles. On a GPU the first step loads the code of every kernel (function
on the GPU) that it launches, since CUDA modules are loaded lazily, creates the handles and
workspaces of cuBLAS and cuDNN, lets cuDNN choose its algorithms, and takes memory from the driver
with cudaMalloc, which PyTorch's allocator keeps and reuses from then on. The CUDA context itself is
made before the build and is not shown here. On a CPU oneDNN generates code for each shape of a
convolution, and pages of memory are touched for the first time. With torch.compile the first step
also traces, generates and compiles code, which takes seconds: here with an empty cache on disk, as
on a new machine.

Measured here on an H200, the first eager step took 206 ms and the fifth 0.24 ms, as all later ones;
compiled, the first took 4.2 s. A mean over all steps mixes both: over 100 steps of eager it is over
2 ms, which no step takes. So a benchmark drops the first steps until the time settles, or takes the
median of many. The set-up does not go away when it is not measured: it is the latency of the first
request after a deployment or an autoscaling event, and a large part of a job that runs for a
minute.

`warmed` takes a few steps in its build, as a server does before it accepts requests. Its curve
starts far lower, though not flat (0.65 ms on the H200), and the time is in the column `build`
instead: a warm-up moves the cost to where nobody waits for it, and saves nothing. It has to use the
shapes of the later steps, since new shapes are set up anew. What does save time is a compiler cache
on disk that is kept between starts, compiling ahead of time (AOTInductor), and one long-lived
process for many jobs.
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
