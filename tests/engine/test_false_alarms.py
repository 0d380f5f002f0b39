"""Two right ways to one result agree, element by element, in every precision."""

import pytest
import torch
from torch.nn import functional

from gpulab.engine.build.agreement import agree

WAYS = {}


def two_ways(make):
    WAYS[make.__name__] = make


@two_ways
def product(n, dtype):
    a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
    half = n // 2
    return a @ b, a[:, :half] @ b[:half] + a[:, half:] @ b[half:]


@two_ways
def product_of_uneven_rows(n, dtype):
    a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
    scales = torch.logspace(-3, 3, n)[:, None].to(dtype)
    return (a * scales) @ b, (a @ b) * scales


@two_ways
def peaked_softmax(n, dtype):
    scores = (torch.randn(n, n) * 8).to(dtype)
    powers = (scores - scores.amax(1, keepdim=True)).exp()
    return scores.softmax(1), powers / powers.sum(1, keepdim=True)


@two_ways
def sums(n, dtype):
    x = torch.randn(n, n).to(dtype)
    return x.sum(1), x.mT.contiguous().sum(0)


@two_ways
def norm(n, dtype):
    x = (torch.randn(n, n) * 3 + 1).to(dtype)
    centred = x - x.mean(1, keepdim=True)
    by_hand = centred * (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()
    return functional.layer_norm(x, (n,)), by_hand


@two_ways
def convolution(n, dtype):
    size = int(n**0.5)
    x, weight = torch.randn(2, 16, size, size).to(dtype), torch.randn(16, 16, 3, 3).to(dtype)
    columns = functional.unfold(x.float(), 3, padding=1).to(dtype)
    by_product = (weight.view(16, -1) @ columns).view(2, 16, size, size)
    return functional.conv2d(x, weight, padding=1), by_product


@two_ways
def attention(n, dtype):
    query, key, value = (torch.randn(1, 2, n, 64).to(dtype) for _ in range(3))
    scores = (query @ key.mT / 8).softmax(-1)
    return functional.scaled_dot_product_attention(query, key, value), scores @ value


@two_ways
def identity(n, dtype):
    x = torch.randn(n, n)
    positive = x @ x.mT + n * torch.eye(n)
    return positive.inverse() @ positive, torch.linalg.solve(positive, positive)


@pytest.mark.parametrize("size", [64, 192])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", WAYS)
def test_two_right_ways_agree(name, dtype, size):
    for seed in range(2):
        torch.manual_seed(seed)
        expected, actual = WAYS[name](size, dtype)
        agreement = agree([actual], [expected])
        assert agreement.ok, agreement
        assert not agree([actual.roll(1)], [expected]).ok
