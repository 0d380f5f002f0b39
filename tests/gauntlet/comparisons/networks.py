# === causal_attention
# Attention to what came before.

HEADS, LENGTH, WIDTH = 4, 64, 32
attention = torch.nn.functional.scaled_dot_product_attention


def operands():
    return [torch.randn(1, HEADS, LENGTH, WIDTH) for _ in range(3)]


def with_a_mask(lab):
    q, k, v = operands()
    mask = torch.ones(LENGTH, LENGTH).tril().bool()
    return Work(lambda: attention(q, k, v, attn_mask=mask), inputs=(q, k, v, mask))


def causal_flag(q, k, v):
    return attention(q, k, v, is_causal=True)


def with_a_bias(lab):
    q, k, v = operands()
    bias = torch.zeros(LENGTH, LENGTH).masked_fill(
        torch.ones(LENGTH, LENGTH).triu(1).bool(), float("-inf")
    )
    return Work(lambda: attention(q, k, v, attn_mask=bias), inputs=(q, k, v, bias))


def by_hand(lab):
    q, k, v = operands()
    later = torch.ones(LENGTH, LENGTH).triu(1).bool()

    def step():
        scores = q @ k.transpose(-1, -2) / WIDTH**0.5
        return scores.masked_fill(later, float("-inf")).softmax(-1) @ v

    return Work(step, inputs=(q, k, v))


def queries_in_pieces(lab):
    """Keys that come later are not even read."""
    q, k, v = operands()
    mask = torch.ones(LENGTH, LENGTH).tril().bool()

    def step():
        return torch.cat(
            [
                attention(
                    q[:, :, at : at + 16],
                    k[:, :, : at + 16],
                    v[:, :, : at + 16],
                    mask[at : at + 16, : at + 16],
                )
                for at in range(0, LENGTH, 16)
            ],
            2,
        )

    return Work(step, inputs=(q, k, v))


# === channels_last
# A convolution whose channels stand together in memory.


def operands():
    return torch.randn(2, 16, 16, 16), torch.randn(16, 16, 3, 3)


def channels_first(x, weight):
    return torch.nn.functional.conv2d(x, weight, padding=1)


def channels_last(lab):
    x, weight = (tensor.to(memory_format=torch.channels_last) for tensor in operands())
    return Work(lambda: torch.nn.functional.conv2d(x, weight, padding=1), inputs=(x, weight))


def unfolded(x, weight):
    columns = torch.nn.functional.unfold(x, 3, padding=1)
    return (weight.view(16, -1) @ columns).view(2, 16, 16, 16)


# === convolution
# A filter over a signal: directly, by Fourier transforms, by a Toeplitz matrix.

N, TAPS = 512, 33
convolve = torch.nn.functional.conv1d


def operands():
    return torch.randn(8, 1, N), torch.randn(TAPS)


def direct(x, taps):
    return convolve(x, taps.flip(0)[None, None], padding=TAPS - 1)


def fourier(lab):
    x, taps = operands()
    length = N + TAPS - 1

    def step():
        return torch.fft.irfft(torch.fft.rfft(x, length) * torch.fft.rfft(taps, length), length)

    return Work(step, inputs=(x, taps))


def toeplitz(lab):
    """The matrix is made in the build."""
    x, taps = operands()
    matrix = torch.zeros(N, N + TAPS - 1)
    for row in range(N):
        matrix[row, row : row + TAPS] = taps
    return Work(lambda: x @ matrix, inputs=(x, matrix))


def windows(lab):
    x, taps = operands()
    padded = torch.nn.functional.pad(x, (TAPS - 1, TAPS - 1))
    return Work(lambda: padded.unfold(2, TAPS, 1) @ taps.flip(0), inputs=(padded, taps))


# === embedding_bag
# The mean of the vectors of a few words; only the words are named.

BAGS, WORDS, WIDTH = 128, 16, 64


def operands():
    return torch.randint(500, (BAGS, WORDS)), torch.randn(500, WIDTH)


def mean_of_vectors(lab):
    words, table = operands()
    return Work(lambda: torch.nn.functional.embedding(words, table).mean(1), inputs=words)


def embedding_bag(lab):
    words, table = operands()
    return Work(lambda: torch.nn.functional.embedding_bag(words, table, mode="mean"), inputs=words)


def loop(lab):
    words, table = operands()
    return Work(lambda: sum(table[column] for column in words.T) / WORDS, inputs=words)


# === jax_layer
# A layer in JAX: compiled or not, waited for or not.

import jax

scenario = Scenario("comparisons", needs=("jax",))
ROWS, N = 64, 128


def operands():
    keys = jax.random.split(jax.random.key(0), 2)
    return jax.random.normal(keys[0], (ROWS, N)), jax.random.normal(keys[1], (N, N))


def _layer(x, weight):
    hidden = x @ weight
    return jax.nn.gelu(hidden - hidden.mean(1, keepdims=True))


def eager(x, weight):
    return _layer(x, weight)


def jitted(lab):
    x, weight = operands()
    compiled = jax.jit(_layer)
    return Work(lambda: compiled(x, weight), inputs=(x, weight))


def waited_for(lab):
    x, weight = operands()
    compiled = jax.jit(_layer)
    return Work(lambda: compiled(x, weight).block_until_ready(), inputs=(x, weight))


def mapped(lab):
    x, weight = operands()
    compiled = jax.jit(jax.vmap(lambda row, weight: _layer(row[None], weight)[0], (0, None)))
    return Work(lambda: compiled(x, weight), inputs=(x, weight))


# === jax_recurrence
# A recurrence in JAX: a loop of Python within jit, or a scan; the data comes from NumPy.

import jax
import jax.numpy as jnp
import numpy as np

scenario = Scenario("comparisons", needs=("jax",))
STEPS, N = 16, 64


def operands():
    data = np.random.default_rng(np.random.randint(1 << 30))
    return jnp.asarray(data.normal(size=(STEPS, N))), jnp.asarray(data.normal(size=(N, N)) / N)


def _advance(state, x, weight):
    return jnp.tanh(weight @ state + x)


def unrolled(lab):
    xs, weight = operands()

    @jax.jit
    def run(xs, weight):
        state = jnp.zeros(N)
        for x in xs:
            state = _advance(state, x, weight)
        return state

    return Work(lambda: run(xs, weight), inputs=(xs, weight))


def scan(lab):
    xs, weight = operands()

    @jax.jit
    def run(xs, weight):
        return jax.lax.scan(lambda state, x: (_advance(state, x, weight), None), jnp.zeros(N), xs)[
            0
        ]

    return Work(lambda: run(xs, weight), inputs=(xs, weight))


def counted_loop(lab):
    xs, weight = operands()

    @jax.jit
    def run(xs, weight):
        return jax.lax.fori_loop(
            0, STEPS, lambda at, state: _advance(state, xs[at], weight), jnp.zeros(N)
        )

    return Work(lambda: jax.block_until_ready(run(xs, weight)), inputs=(xs, weight))


# === modules
# A small network as a user has it: in modes, in eager and functional form; only data is named.

import functools

N = 64


def model():
    return torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.GELU(), torch.nn.Linear(N, N)).eval()


def with_gradients(lab):
    network, x = model(), torch.randn(32, N)
    return Work(lambda: network(x), inputs=x)


def no_grad(lab):
    network, x = model(), torch.randn(32, N)

    @torch.no_grad()
    def step():
        return network(x)

    return Work(step, inputs=x)


def inference_mode(lab):
    network, x = model(), torch.randn(32, N)
    return Work(lambda: network(x), inputs=x, context=torch.inference_mode)


def functional(lab):
    network, x = model().requires_grad_(False), torch.randn(32, N)
    first, _, last = network

    def step():
        hidden = torch.addmm(first.bias, x, first.weight.T)
        return torch.addmm(last.bias, torch.nn.functional.gelu(hidden), last.weight.T)

    return Work(step, inputs=x)


def half_precision(lab):
    network, x = model().requires_grad_(False).bfloat16(), torch.randn(32, N)
    return Work(lambda: network(x.bfloat16()).float(), inputs=x, dtype="bf16")


def autocast(lab):
    network, x = model().requires_grad_(False), torch.randn(32, N)
    context = functools.partial(torch.autocast, "cpu", torch.bfloat16)
    return Work(lambda: network(x), inputs=x, dtype="bf16", context=context)


# === normalisation
# Group normalisation: by hand, by the library, by its formula.

BATCH, CHANNELS, GROUPS, SIDE = 4, 16, 4, 16


def operands():
    return torch.randn(BATCH, CHANNELS, SIDE, SIDE), torch.rand(CHANNELS), torch.randn(CHANNELS)


def by_hand(x, scale, shift):
    grouped = x.view(BATCH, GROUPS, -1)
    variance, mean = torch.var_mean(grouped, 2, correction=0, keepdim=True)
    normal = ((grouped - mean) / (variance + 1e-5).sqrt()).view_as(x)
    return normal * scale[:, None, None] + shift[:, None, None]


def group_norm(x, scale, shift):
    return torch.nn.functional.group_norm(x, GROUPS, scale, shift)


def module(lab):
    x, scale, shift = operands()
    norm = torch.nn.GroupNorm(GROUPS, CHANNELS).requires_grad_(False)
    norm.weight.copy_(scale)
    norm.bias.copy_(shift)
    return Work(lambda: norm(x), inputs=(x, norm))


def layer_norm_of_groups(lab):
    x, scale, shift = operands()

    def step():
        normal = torch.nn.functional.layer_norm(
            x.view(BATCH, GROUPS, -1), (CHANNELS // GROUPS * SIDE * SIDE,)
        )
        return torch.addcmul(shift[:, None, None], normal.view_as(x), scale[:, None, None])

    return Work(step, inputs=(x,))


# === peaked_softmax
# Softmax of logits that are far apart, in fp32 and in half precision.

ROWS, N = 128, 256


def fp32(lab):
    x = torch.randn(ROWS, N) * 3
    return Work(lambda: x.softmax(1), inputs=x)


def bf16(lab):
    x = (torch.randn(ROWS, N) * 3).bfloat16()
    return Work(lambda: x.softmax(1), inputs=x, dtype="bf16")


def bf16_in_the_step(lab):
    x = torch.randn(ROWS, N) * 3
    return Work(lambda: x.softmax(1).bfloat16(), inputs=x, dtype="bf16")


def fp16(lab):
    x = torch.randn(ROWS, N) * 3
    return Work(lambda: x.softmax(1).half(), inputs=x, dtype="fp16")


def by_hand(lab):
    x = torch.randn(ROWS, N) * 3

    def step():
        exponents = (x - x.amax(1, keepdim=True)).exp()
        return exponents / exponents.sum(1, keepdim=True)

    return Work(step, inputs=x)


# === rotary
# Rotary positions: tables made in each step, or kept by shape, type and device, as libraries
# do.

LENGTH, WIDTH = 128, 64
TABLES = {}


def table():
    angles = torch.arange(LENGTH)[:, None] * 10_000 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    return angles.cos(), angles.sin()


def _rotated(x, cos, sin):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def in_each_step(lab):
    x = torch.randn(4, LENGTH, WIDTH)
    return Work(lambda: _rotated(x, *table()), inputs=x)


def kept_by_shape(lab):
    x = torch.randn(4, LENGTH, WIDTH)

    def step():
        key = x.shape, x.dtype, x.device
        if key not in TABLES:
            TABLES[key] = table()
        return _rotated(x, *TABLES[key])

    return Work(step, inputs=x)


# === traced
# Many small operations, eager or traced once by shape and type.

N = 64


def _chain(x):
    for place in range(10):
        x = x + x.sigmoid() * 0.1 * (place + 1)
    return x


def eager(lab):
    x = torch.randn(N)
    return Work(lambda: _chain(x), inputs=x)


def traced_once(lab):
    x = torch.randn(N)
    traced = {}

    def step():
        key = x.shape, x.dtype
        if key not in traced:
            traced[key] = torch.jit.trace(_chain, x)
        return traced[key](x)

    return Work(step, inputs=x)
