"""Distances between points, in NumPy and in torch."""

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
POINTS, QUERIES, N = 256, 32, 8


def points():
    return np.random.rand(QUERIES, N).astype("float32"), np.random.rand(POINTS, N).astype("float32")


@scenario.variant
def loop(lab):
    queries, data = points()
    return Work(
        lambda: np.stack([((data - query) ** 2).sum(1) for query in queries]),
        inputs=(queries, data),
    )


@scenario.variant
def vectorised(lab):
    queries, data = points()
    return Work(lambda: ((queries[:, None] - data) ** 2).sum(2), inputs=(queries, data))


@scenario.variant
def einsum(lab):
    queries, data = points()

    def step():
        differences = queries[:, None] - data
        return np.einsum("qpn,qpn->qp", differences, differences)

    return Work(step, inputs=(queries, data))


@scenario.variant
def in_place(lab):
    queries, data = points()
    differences, out = (
        np.empty((QUERIES, POINTS, N), "float32"),
        np.empty((QUERIES, POINTS), "float32"),
    )

    def step():
        np.subtract(queries[:, None], data, out=differences)
        np.square(differences, out=differences)
        np.sum(differences, axis=2, out=out)
        return out

    return Work(step, inputs=(queries, data))


@scenario.variant
def in_torch(lab):
    queries, data = map(torch.from_numpy, points())
    return Work(lambda: torch.cdist(queries, data).square(), inputs=(queries, data))
