"""Planted on a CPU: DataLoaders with one worker process."""

import zlib

import torch
from torch.utils.data import DataLoader, Dataset

from gpulab import Scenario, Work

scenario = Scenario("planted", smoke={})
_STORED = zlib.compress(bytes(range(256)) * 2**12)


@scenario.variant
def loading_too_slow(lab):
    """A sample costs the worker three times what the model takes."""
    return _loaded(70)


@scenario.variant(against=None, unchecked="computes something else")
def loading_too_slow_twin(lab):
    """A sample costs the worker much less than the model takes."""
    return _loaded(1)


class _Samples(Dataset):
    def __init__(self, times):
        self._times = times

    def __len__(self):
        return 8

    def __getitem__(self, index):
        for _ in range(self._times):
            zlib.decompress(_STORED)
        return torch.full((8,), float(index))


def _loaded(times):
    loader = DataLoader(_Samples(times), batch_size=1, num_workers=1, persistent_workers=True)
    data = torch.randn(768, 768)
    out = torch.empty_like(data)

    def step():
        for batch in loader:
            torch.mm(data, data, out=out)
            out[0, :8] += batch[0]
        return out

    return Work(step, inputs=data)
