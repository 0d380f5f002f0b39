"""What each fix changes of a built step. The text of these functions is copied into the scenario
that tries them, so each stands by itself: names of torch, and `built`.
"""

from __future__ import annotations

import os

import torch

from gpulab.function_step import BuiltStep


def tf32(built: BuiltStep) -> None:
    """Products and convolutions of fp32 on tensor cores, with 10 bits of mantissa."""
    for kind in (torch.backends.cuda.matmul, torch.backends.cudnn.conv):
        built.runs_with(kind, "fp32_precision", "tf32")
    built.computes_in("tf32")


def autocast_bf16(built: BuiltStep) -> None:
    """The model's forward under torch.autocast with bf16, what it returns in fp32 again; a step
    without a model as a whole.
    """
    device = built.lab.device.type

    def as_fp32(value):
        if isinstance(value, torch.Tensor):
            return value.float() if value.dtype == torch.bfloat16 else value
        if type(value) in (tuple, list):
            return type(value)(as_fp32(each) for each in value)
        if isinstance(value, dict):
            for key in value:
                value[key] = as_fp32(value[key])
        return value

    def in_bf16(function):
        def autocast(*arguments, **keywords):
            with torch.autocast(device, torch.bfloat16):
                return as_fp32(function(*arguments, **keywords))

        return autocast

    # Not the whole step: a backward under autocast had ten times the error in its gradients.
    for model in built.called_modules:
        model.forward = in_bf16(model.forward)
    if not built.called_modules:
        built.call = in_bf16(built.call)
    built.computes_in("bf16")


def compile_model(built: BuiltStep) -> None:
    """torch.compile of the model, forward and backward."""
    for model in built.called_modules:
        model.forward = torch.compile(model.forward)  # compile() of a Sequential does nothing


def fused_optimizer(built: BuiltStep) -> None:
    """Each optimizer with fused=True: one pass over each tensor."""
    for optimizer in built.optimizers:
        for group in optimizer.param_groups:
            group.update(fused=True, foreach=False)
        for parameter, state in optimizer.state.items():  # of steps that the program has taken
            state["step"] = torch.as_tensor(state["step"], device=parameter.device).float()


def channels_last(built: BuiltStep) -> None:
    """The model's images and weights with their channels last in memory (NHWC)."""
    for model in built.modules:
        model.to(memory_format=torch.channels_last)


def loader_workers(built: BuiltStep) -> None:
    """DataLoaders with worker processes that persist and load ahead."""
    workers = max(1, min(4, len(os.sched_getaffinity(0)) - 1))
    for tensor in built.tensors.values():
        if not tensor.is_cuda and not tensor.requires_grad:
            tensor.share_memory_()  # the lab changes values between steps, and workers must see it
    for loader in built.loaders:
        if loader.num_workers == 0:
            loader.num_workers = workers
            loader.multiprocessing_context = "fork"
            loader.prefetch_factor = 2
        vars(loader)["persistent_workers"] = True  # the loader itself forbids a later change
        # workers end with the last reference to the iterator
        built.closing.append(lambda loader=loader: setattr(loader, "_iterator", None))


def cudnn_benchmark(built: BuiltStep) -> None:
    """torch.backends.cudnn.benchmark: the fastest algorithm for each shape of a convolution."""
    built.runs_with(torch.backends.cudnn, "benchmark", True)


def cuda_graph(built: BuiltStep) -> None:
    """The whole step as one CUDA graph, captured once and replayed."""
    step = built.call
    for optimizer in built.optimizers:
        for group in optimizer.param_groups:
            if "capturable" in group:
                group["capturable"] = True
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), built.entered():
        for _ in range(3):  # libraries set themselves up, which a capture does not allow
            step()
    torch.cuda.current_stream().wait_stream(side)
    tensors = [*built.parameters, *(b for model in built.modules for b in model.buffers())]
    for optimizer in built.optimizers:
        for state in optimizer.state.values():
            tensors += [value for value in state.values() if isinstance(value, torch.Tensor)]
    saved = [tensor.detach().clone() for tensor in tensors]
    graph = torch.cuda.CUDAGraph()
    try:
        with built.entered(), torch.cuda.graph(graph):
            returned = step()
    except RuntimeError as error:
        built.lab.skip(f"the step cannot be captured: {str(error).splitlines()[0]}")
    with torch.no_grad():
        for tensor, value in zip(tensors, saved, strict=True):
            tensor.copy_(value)

    def replayed():
        graph.replay()
        return returned

    built.call = replayed
