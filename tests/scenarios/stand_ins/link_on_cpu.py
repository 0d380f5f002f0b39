"""A link without a GPU: `.to` copies what came from `.cpu()`, and nothing else."""

import torch

to_host, to_device = torch.Tensor.cpu, torch.Tensor.to


def cpu(tensor):
    tensor = to_host(tensor)
    tensor.is_on_host = True
    return tensor


def to(tensor, *args, **kwargs):
    if getattr(tensor, "is_on_host", False):
        kwargs["copy"] = True
    return to_device(tensor, *args, **kwargs)


torch.Tensor.cpu, torch.Tensor.to = cpu, to
torch.Tensor.pin_memory = lambda tensor: tensor
