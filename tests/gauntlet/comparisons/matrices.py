# === block_sparse
# A block-diagonal matrix, whole and by its blocks.

BLOCKS, N = 8, 48


def operands():
    return torch.randn(BLOCKS, N, N), torch.randn(BLOCKS * N, 16)


def whole(lab):
    blocks, x = operands()
    matrix = torch.block_diag(*blocks)
    return Work(lambda: matrix @ x, inputs=(matrix, x))


def by_blocks(blocks, x):
    return (blocks @ x.view(BLOCKS, N, 16)).view(BLOCKS * N, 16)


def in_a_loop(blocks, x):
    return torch.cat([block @ rows for block, rows in zip(blocks, x.split(N), strict=True)])


# === scores_of_one_query
# A few microseconds each: after a pause, and on new values, both take several times as long.

DOCUMENTS, N = 500, 64


def operands():
    return torch.randn(1, 1, N), torch.randn(1, DOCUMENTS, N)


def product_and_sum(query, keys):
    return (query * keys).sum(-1)


def batched(query, keys):
    return torch.bmm(keys, query.mT).squeeze(-1)


# === complex_numbers
# A product of complex matrices.

N = 96


def operands():
    return torch.randn(N, N, dtype=torch.complex64), torch.randn(N, N, dtype=torch.complex64)


def complex_product(a, b):
    return a @ b


def four_products(a, b):
    real = a.real @ b.real - a.imag @ b.imag
    return torch.complex(real, a.real @ b.imag + a.imag @ b.real)


def three_products(lab):
    """By Gauss, from parts that stand by themselves."""
    a, b = operands()
    a_real, a_imag, b_real, b_imag = (
        part.contiguous() for part in (a.real, a.imag, b.real, b.imag)
    )

    def step():
        first = (a_real + a_imag) @ b_real
        second = a_real @ (b_imag - b_real)
        third = a_imag @ (b_real + b_imag)
        return torch.complex(first - third, first + second)

    return Work(step, inputs=(a_real, a_imag, b_real, b_imag))


# === dominant_eigenvalue
# The largest eigenvalue of a covariance with one strong direction.

N = 64


def covariance():
    x, strong = torch.randn(N, 2 * N), torch.randn(N, 1)
    return x @ x.T / (2 * N) + strong @ strong.T


def all_of_them(a):
    return torch.linalg.eigvalsh(a)[-1]


def power_iteration(a):
    vector, value = torch.ones(N), 0.0
    for _ in range(100):
        product = a @ vector
        before, value = value, float(product.norm())
        vector = product / value
        if abs(value - before) < 1e-6 * value:
            break
    return vector @ a @ vector


# === fixed_point
# A fixed point by a hundred iterations, or by as many as it takes.

N, MOST = 128, 100


def operands():
    matrix = torch.randn(N, N)
    return 0.4 * matrix / torch.linalg.matrix_norm(matrix, 2), torch.randn(N)


def all_iterations(a, b):
    x = b
    for _ in range(MOST):
        x = a @ x + b
    return x


def until_it_stands_still(a, b):
    x = b
    for _ in range(MOST):
        previous, x = x, torch.addmv(b, a, x)
        if (x - previous).abs().max().item() < 3e-7:
            break
    return x


# === int8_product
# A product of whole numbers, which is exact in any order.

N = 96


def operands():
    return [torch.randint(-128, 128, (N, N), dtype=torch.int8) for _ in range(2)]


def in_int32(lab):
    a, b = operands()
    return Work(lambda: a.int() @ b.int(), inputs=(a, b), dtype="int8")


def int_mm(lab):
    a, b = operands()
    return Work(lambda: torch._int_mm(a, b), inputs=(a, b), dtype="int8")


def in_float(a, b):
    """Sums below 2**24 are exact."""
    return (a.float() @ b.float()).int()


# === int8_weights
# A layer whose weights and inputs are quantized to eight bits.

ROWS, N = 64, 256


def operands():
    return torch.randn(ROWS, N), torch.randn(N, N) / 16


def fp32(x, weight):
    return x @ weight


def int8(lab):
    """Weights quantized in the build, inputs in the step."""
    x, weight = operands()
    scale = weight.abs().amax(0) / 127
    quantized = (weight / scale).round().to(torch.int8)

    def step():
        scale_x = x.abs().amax(1, keepdim=True) / 127
        rows = (x / scale_x).round().to(torch.int8)
        return torch._int_mm(rows, quantized).float() * scale_x * scale

    return Work(step, inputs=(x, quantized, scale), dtype="int8")


# === python_loops
# Loops of Python over numbers; no tensor is read, and none is named.

import math
import operator
import random

import numpy as np

N = 2000


def numbers():
    return [random.random() for _ in range(N)]


def loop(lab):
    values = numbers()

    def step():
        total = 0.0
        for value in values:
            total += value * value
        return torch.tensor(total)

    return Work(step)


def comprehension(lab):
    values = numbers()
    return Work(lambda: torch.tensor(sum(value * value for value in values)))


def sumprod(lab):
    values = numbers()
    return Work(lambda: torch.tensor(math.fsum(map(operator.mul, values, values))))


def array(lab):
    values = np.array(numbers())
    return Work(lambda: values @ values, inputs=values)


# === sparse_product
# A matrix of which one element in fifty is not zero.

N, COLUMNS = 384, 16


def operands():
    matrix = torch.randn(N, N) * (torch.rand(N, N) < 0.02)
    return matrix, torch.randn(N, COLUMNS)


def dense(matrix, x):
    return matrix @ x


def csr(lab):
    matrix, x = operands()
    rows = matrix.to_sparse_csr()
    return Work(
        lambda: rows @ x, inputs=(rows.crow_indices(), rows.col_indices(), rows.values(), x)
    )


def csr_of_named_values(lab):
    """Names what has values."""
    matrix, x = operands()
    rows = matrix.to_sparse_csr()
    return Work(lambda: rows @ x, inputs=(rows.values(), x))


def coordinates(lab):
    matrix, x = operands()
    elements = matrix.to_sparse_coo().coalesce()
    return Work(lambda: elements @ x, inputs=(elements.indices(), elements.values(), x))


def sparse_tensor_named(lab):
    matrix, x = operands()
    rows = matrix.to_sparse_csr()
    return Work(lambda: rows @ x, inputs=(rows, x))


def nothing_named(lab):
    matrix, x = operands()
    rows = matrix.to_sparse_csr()
    return Work(lambda: rows @ x)


# === spd_solve
# A system with a symmetric positive definite matrix, solved in five ways.

N = 96


def system():
    x = torch.randn(N, N)
    return x @ x.T / N + torch.eye(N), torch.randn(N, 4)


def general(a, b):
    return torch.linalg.solve(a, b)


def cholesky(a, b):
    return torch.cholesky_solve(b, torch.linalg.cholesky(a))


def lu(a, b):
    return torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)


def qr(a, b):
    q, r = torch.linalg.qr(a)
    return torch.linalg.solve_triangular(r, q.T @ b, upper=True)


def least_squares(a, b):
    return torch.linalg.lstsq(a, b).solution


def conjugate_gradients(a, b):
    """Ends once the residual is small."""
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


# === tf32_in_a_context
# TF32 is allowed around the steps of one variant, and as it was after them.

import contextlib

N = 192


@contextlib.contextmanager
def tf32():
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@contextlib.contextmanager
def high_precision():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


def fp32(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: a @ b, inputs=(a, b))


def allow_tf32(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: a @ b, inputs=(a, b), dtype="tf32", context=tf32)


def matmul_precision(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: a @ b, inputs=(a, b), dtype="tf32", context=high_precision)


def within_the_step(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)

    def step():
        with tf32():
            return a @ b

    return Work(step, inputs=(a, b), dtype="tf32")


# === transposed
# Sums of columns of a matrix that is stored by rows, or by columns.

N = 768


def by_rows(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.sum(0), inputs=x)


def by_columns(lab):
    x = torch.randn(N, N).T.contiguous()
    return Work(lambda: x.sum(1), inputs=x)


def strided_view(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.T.sum(1), inputs=x)


def product(lab):
    x, ones = torch.randn(N, N), torch.ones(N)
    return Work(lambda: ones @ x, inputs=x)
