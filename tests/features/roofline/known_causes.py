"""Steps whose cause is known: each is a variant, and a plain function as well."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from gpulab.scenario import MiB, Scenario, Work

scenario = Scenario("basics", per="item")
POOL = ThreadPoolExecutor(1)
NUMBERS = np.random.default_rng(0).random(200_000)


@scenario.variant(unchecked="the steps differ")
def large_copy(lab):
    source, target = torch.rand(16 * MiB), torch.rand(16 * MiB)
    return Work(lambda: target.copy_(source), bytes=128 * MiB)


@scenario.variant(against=None, unchecked="the steps differ")
def large_sum(lab):
    values = torch.rand(16 * MiB)
    return Work(values.sum, bytes=64 * MiB, flops=16 * MiB)


@scenario.variant(against=None, unchecked="the steps differ")
def large_product(lab):
    left, right = torch.rand(2, 768, 768)
    return Work(lambda: left @ right, bytes=12 * 768**2, flops=2 * 768**3)


@scenario.variant(against=None, unchecked="the steps differ")
def chain_in_cache(lab):
    values, added = torch.rand(2, 64 * 1024)

    def step():
        for _ in range(10):
            values.mul_(0.9).add_(added)
        return values

    return Work(step, bytes=10 * 20 * 64 * 1024, flops=20 * 64 * 1024, state=[values])


@scenario.variant(against=None, unchecked="the steps differ")
def tiny_operations(lab):
    start = torch.rand(8)

    def step():
        values = start
        for _ in range(500):
            values = values * 0.5
        return values

    return Work(step, bytes=500 * 64, flops=500 * 8)


@scenario.variant(against=None, unchecked="the steps differ")
def decided_by_data(lab):
    values = torch.rand(16)
    return Work(
        lambda: sum(values.sum().item() > 0 for _ in range(300)), bytes=300 * 64, flops=300 * 16
    )


@scenario.variant(against=None, unchecked="the steps differ")
def mv_in_a_loop(lab):
    matrix, columns = torch.rand(1024, 1024), torch.rand(1024, 32)
    return Work(
        lambda: [torch.mv(matrix, columns[:, i]) for i in range(32)], bytes=4 * MiB, flops=64 * MiB
    )


@scenario.variant(against=None, unchecked="the steps differ")
def mv_of_a_transposed_matrix(lab):
    matrix, column = torch.rand(2048, 2048).t(), torch.rand(2048)
    return Work(lambda: matrix @ column, bytes=16 * MiB, flops=8 * MiB)


@scenario.variant(against=None, unchecked="the steps differ")
def strided(lab):
    values = torch.rand(16 * MiB)[::16]
    return Work(lambda: values * 2, bytes=8 * MiB, flops=MiB)


@scenario.variant(against=None, unchecked="the steps differ")
def gather(lab):
    table, places = torch.rand(16 * MiB), torch.randint(0, 16 * MiB, (MiB,))
    return Work(lambda: table[places], bytes=16 * MiB)


@scenario.variant(against=None, unchecked="the steps differ")
def softmax(lab):
    values = torch.rand(2048, 2048)
    return Work(lambda: torch.softmax(values, -1), bytes=32 * MiB, flops=20 * MiB)


@scenario.variant(against=None, unchecked="the steps differ")
def new_memory(lab):
    return Work(lambda: torch.ones(16 * MiB), bytes=64 * MiB)


@scenario.variant(against=None, unchecked="the steps differ")
def python_loop(lab):
    return Work(loop, flops=400_000)


@scenario.variant(against=None, unchecked="the steps differ")
def of_another_library(lab):
    return Work(sort, bytes=16 * NUMBERS.size)


@scenario.variant(against=None, unchecked="the steps differ")
def waits_for_a_thread(lab):
    return Work(wait, flops=1000)


@scenario.variant(against=None, unchecked="the steps differ")
def sleeps(lab):
    return Work(lambda: time.sleep(0.004), flops=1000)


def loop():
    total = 0
    for i in range(200_000):
        total += i * i
    return total


def sort():
    return np.sort(NUMBERS)


def wait():
    return POOL.submit(time.sleep, 0.004).result()


def small():
    values = torch.ones(8)
    for _ in range(500):
        values = values * 0.5
    return values
