"""Planted on a CPU: each variant is named after the finding that it deserves, and its twin, which
differs in one thing, deserves none.
"""

import ctypes
import threading
import zlib

import torch

from gpulab import Scenario, Work

scenario = Scenario("planted", smoke={})


@scenario.variant
def reference(lab):
    """A baseline, which nothing is compared with."""
    data = torch.randn(2**16)
    out = torch.empty_like(data)
    return Work(lambda: torch.mul(data, 2, out=out), bytes=2 * data.nbytes, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def data_wait(lab):
    """Each sample is decoded where the step waits for it."""
    return _trained(lab, _decoded_first)


@scenario.variant(against=None, unchecked="computes something else")
def data_wait_twin(lab):
    """The same decoding, beside a model that takes longer."""
    return _trained(lab, _decoded_beside)


_STORED = zlib.compress(bytes(range(256)) * 2**12)


def _decode():
    return zlib.decompress(_STORED)[0]


def _decoded_first(lab, model):
    with lab.phase("data"):
        for _ in range(4):
            _decode()
    model()


def _decoded_beside(lab, model):
    following = threading.Thread(target=_decode)
    following.start()
    for _ in range(4):
        model()
    with lab.phase("data"):
        following.join()


def _trained(lab, train):
    data = torch.randn(320, 320)
    out = torch.empty_like(data)

    def step():
        train(lab, lambda: torch.mm(data, data, out=out))
        return out

    return Work(step, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def many_small_operations(lab):
    """300 operations on 16 numbers."""
    return _chain(16)


@scenario.variant(against=None, unchecked="computes something else")
def many_small_operations_twin(lab):
    """The same operations on 256 Ki numbers, each many times as long as its start."""
    return _chain(2**18)


def _chain(count):
    data = torch.randn(count)
    out = torch.empty_like(data)

    def step():
        torch.mul(data, 1.01, out=out)
        for _ in range(299):
            out.mul_(0.99)
        return out

    return Work(step, bytes=8 * data.nbytes, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def allocates_each_step(lab):
    """A fresh tensor of 40 MiB in each step, which the system gives back."""
    return _filled(lambda _, value: torch.empty(_FILLED).fill_(value))


@scenario.variant(against=None, unchecked="computes something else")
def allocates_each_step_twin(lab):
    """The same into memory that is there."""
    return _filled(lambda out, value: out.fill_(value))


_FILLED = 10 * 2**20
_THP_DISABLE = 41
"""Of prctl: pages of 4 KiB, on machines that give huge ones to everybody, too."""


def _filled(function):
    """It only writes: what a fresh page costs more is most of it, however fast memory is."""
    ctypes.CDLL(None).prctl(_THP_DISABLE, 1, 0, 0, 0)
    value = torch.randn(())
    out = torch.empty(_FILLED)
    return Work(lambda: function(out, value), bytes=out.nbytes, inputs=value)


@scenario.variant(against=None, unchecked="computes something else")
def optimizer_not_fused(lab):
    """Adam, parameter by parameter."""
    return _updated(foreach=False)


@scenario.variant(against=None, unchecked="computes something else")
def optimizer_not_fused_twin(lab):
    """Adam, fused."""
    return _updated(fused=True)


def _updated(**form):
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(12)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6, **form)
    data = torch.randn(16, 64)

    def step():
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Work(step, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def not_fused(lab):
    """Six pointwise operations, one after the other, on 16 MiB."""
    data = torch.randn(4 * 2**20)
    out = torch.empty_like(data)
    return Work(lambda: _pointwise(data, out), inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def not_fused_twin(lab):
    """The same operations beside a product that takes nearly all of the time."""
    data = torch.randn(2**10, 2**9)
    out = torch.empty_like(data)
    weight = torch.randn(2**9, 2**10)
    product = torch.empty(2**10, 2**10)

    def step():
        return torch.mm(_pointwise(data, out), weight, out=product)

    return Work(step, inputs=(data, weight))


def _pointwise(data, out):
    torch.mul(data, 1.01, out=out)
    out.add_(0.1)
    out.relu_()
    out.mul_(0.9)
    out.clamp_(max=2.0)
    return out.sub_(0.1)
