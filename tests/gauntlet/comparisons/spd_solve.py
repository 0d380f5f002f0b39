"""A system with a symmetric positive definite matrix, solved in five ways."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 96


def system():
    x = torch.randn(N, N)
    return x @ x.T / N + torch.eye(N), torch.randn(N, 4)


@scenario.variant
def general(lab):
    a, b = system()
    return Work(lambda: torch.linalg.solve(a, b), inputs=(a, b))


@scenario.variant
def cholesky(lab):
    a, b = system()
    return Work(lambda: torch.cholesky_solve(b, torch.linalg.cholesky(a)), inputs=(a, b))


@scenario.variant
def lu(lab):
    a, b = system()
    return Work(lambda: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), inputs=(a, b))


@scenario.variant
def qr(lab):
    a, b = system()

    def step():
        q, r = torch.linalg.qr(a)
        return torch.linalg.solve_triangular(r, q.T @ b, upper=True)

    return Work(step, inputs=(a, b))


@scenario.variant
def least_squares(lab):
    a, b = system()
    return Work(lambda: torch.linalg.lstsq(a, b).solution, inputs=(a, b))


@scenario.variant
def conjugate_gradients(lab):
    """Ends once the residual is small."""
    a, b = system()

    def step():
        x = torch.zeros_like(b)
        residual = b.clone()
        direction = residual
        squares = (residual * residual).sum(0)
        limit = 1e-12 * squares
        for _ in range(4 * N):
            if bool((squares <= limit).all()):
                break
            product = a @ direction
            alpha = squares / (direction * product).sum(0)
            x = x + alpha * direction
            residual = residual - alpha * product
            before, squares = squares, (residual * residual).sum(0)
            direction = residual + squares / before * direction
        return x

    return Work(step, inputs=(a, b))
