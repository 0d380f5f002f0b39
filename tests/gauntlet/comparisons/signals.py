# === blur
# A Gaussian filter over an image: by all of its taps, or by rows and columns.

N = 128
convolve = torch.nn.functional.conv2d


def operands():
    taps = torch.exp(-torch.linspace(-2, 2, 9).square())
    return torch.randn(1, 1, N, N), taps / taps.sum()


def all_taps(lab):
    x, taps = operands()
    kernel = taps.outer(taps)[None, None]
    return Work(lambda: convolve(x, kernel, padding=4), inputs=x)


def rows_and_columns(lab):
    x, taps = operands()
    row, column = taps.view(1, 1, 1, 9), taps.view(1, 1, 9, 1)
    return Work(
        lambda: convolve(convolve(x, row, padding=(0, 4)), column, padding=(4, 0)), inputs=x
    )


# === cumulative
# A running sum.

ROWS, N = 64, 64


def loop(lab):
    x, out = torch.randn(ROWS, N), torch.empty(ROWS, N)

    def step():
        total = torch.zeros(N)
        for row in range(ROWS):
            total = total + x[row]
            out[row] = total
        return out

    return Work(step, inputs=x)


def cumsum(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.cumsum(0), inputs=x)


def triangular_product(lab):
    x, ones = torch.randn(ROWS, N), torch.ones(ROWS, ROWS).tril()
    return Work(lambda: ones @ x, inputs=x)


def doubling(lab):
    x = torch.randn(ROWS, N)

    def step():
        sums, distance = x.clone(), 1
        while distance < ROWS:
            sums[distance:] += sums[:-distance].clone()
            distance *= 2
        return sums

    return Work(step, inputs=x)


# === distances
# Distances between points, in NumPy and in torch.

import numpy as np

POINTS, QUERIES, N = 256, 32, 8


def points():
    return np.random.rand(QUERIES, N).astype("float32"), np.random.rand(POINTS, N).astype("float32")


def loop(queries, data):
    return np.stack([((data - query) ** 2).sum(1) for query in queries])


def vectorised(queries, data):
    return ((queries[:, None] - data) ** 2).sum(2)


def einsum(queries, data):
    differences = queries[:, None] - data
    return np.einsum("qpn,qpn->qp", differences, differences)


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


def in_torch(lab):
    queries, data = map(torch.from_numpy, points())
    return Work(lambda: torch.cdist(queries, data).square(), inputs=(queries, data))


# === fourier
# A two-dimensional Fourier transform of real numbers.

N = 128


def whole(lab):
    x = torch.randn(N, N)
    return Work(lambda: torch.fft.fft2(x)[:, : N // 2 + 1], inputs=x)


def real(lab):
    x = torch.randn(N, N)
    return Work(lambda: torch.fft.rfft2(x), inputs=x)


def one_axis_at_a_time(lab):
    x = torch.randn(N, N)
    return Work(lambda: torch.fft.fft(torch.fft.rfft(x, dim=1), dim=0), inputs=x)


# === moving_average
# A moving average of a model's weights, in place.

N, LAYERS = 64, 8


def operands():
    weights = [torch.randn(N, N) for _ in range(LAYERS)]
    return weights, [torch.zeros(N, N) for _ in weights]


def loop(lab):
    weights, averages = operands()

    def step():
        for average, weight in zip(averages, weights, strict=True):
            average.mul_(0.99).add_(weight, alpha=0.01)
        return averages

    return Work(step, inputs=weights, state=averages)


def lerp(lab):
    weights, averages = operands()

    def step():
        for average, weight in zip(averages, weights, strict=True):
            average.lerp_(weight, 0.01)
        return averages

    return Work(step, inputs=weights, state=averages)


def foreach(lab):
    weights, averages = operands()

    def step():
        torch._foreach_lerp_(averages, weights, 0.01)

    return Work(step, inputs=weights, state=averages, output=averages)


# === polynomial
# A polynomial at many points: by powers, by Horner, with the coefficients as numbers or in a
# tensor.

N = 1 << 13
COEFFICIENTS = (0.5, -1.0, 0.25, 2.0, -0.125)


def powers(lab):
    x = torch.rand(N) * 2 - 1
    return Work(
        lambda: sum(factor * x**power for power, factor in enumerate(COEFFICIENTS)), inputs=x
    )


def horner(lab):
    x = torch.rand(N) * 2 - 1

    def step():
        result = torch.full_like(x, COEFFICIENTS[-1])
        for factor in COEFFICIENTS[-2::-1]:
            result = result * x + factor
        return result

    return Work(step, inputs=x)


def vandermonde(lab):
    x = torch.rand(N) * 2 - 1
    factors = torch.tensor(COEFFICIENTS)
    return Work(lambda: torch.vander(x, len(factors), increasing=True) @ factors, inputs=x)


# === stencil
# A step of heat: by shifts, by slices, by a convolution.

N = 96


def shifts(lab):
    x = torch.rand(N, N)

    def step():
        around = x.roll(1, 0) + x.roll(-1, 0) + x.roll(1, 1) + x.roll(-1, 1)
        return (x + 0.1 * (around - 4 * x))[1:-1, 1:-1]

    return Work(step, inputs=x)


def slices(lab):
    x = torch.rand(N, N)

    def step():
        inner = x[1:-1, 1:-1]
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return torch.lerp(inner, around / 4, 0.4)

    return Work(step, inputs=x)


def convolution(lab):
    x = torch.rand(N, N)
    kernel = torch.tensor([[0.0, 0.1, 0.0], [0.1, 0.6, 0.1], [0.0, 0.1, 0.0]])
    return Work(
        lambda: torch.nn.functional.conv2d(x[None, None], kernel[None, None])[0, 0], inputs=x
    )


# === windows
# Means over sliding windows, in NumPy.

import numpy as np

N, WINDOW = 2048, 16


def signal():
    return np.random.rand(N)


def loop(x):
    return np.array([x[at : at + WINDOW].mean() for at in range(0, N - WINDOW + 1, 16)])


def strides(x):
    return np.lib.stride_tricks.sliding_window_view(x, WINDOW)[::16].mean(1)


def reshaped(x):
    return x.reshape(-1, WINDOW).mean(1)


def running_sum(x):
    sums = np.concatenate([[0.0], np.cumsum(x)])
    return (sums[WINDOW::16] - sums[:-WINDOW:16]) / WINDOW
