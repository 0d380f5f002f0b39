"""A recurrence in JAX: a loop of Python within jit, or a scan; the data comes from NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from gpulab import Scenario, Work

scenario = Scenario("comparisons", needs=("jax",))
STEPS, N = 16, 64


def operands():
    data = np.random.default_rng(np.random.randint(1 << 30))
    return jnp.asarray(data.normal(size=(STEPS, N))), jnp.asarray(data.normal(size=(N, N)) / N)


def advance(state, x, weight):
    return jnp.tanh(weight @ state + x)


@scenario.variant
def unrolled(lab):
    xs, weight = operands()

    @jax.jit
    def run(xs, weight):
        state = jnp.zeros(N)
        for x in xs:
            state = advance(state, x, weight)
        return state

    return Work(lambda: run(xs, weight), inputs=(xs, weight))


@scenario.variant
def scan(lab):
    xs, weight = operands()

    @jax.jit
    def run(xs, weight):
        return jax.lax.scan(lambda state, x: (advance(state, x, weight), None), jnp.zeros(N), xs)[0]

    return Work(lambda: run(xs, weight), inputs=(xs, weight))


@scenario.variant
def counted_loop(lab):
    xs, weight = operands()

    @jax.jit
    def run(xs, weight):
        return jax.lax.fori_loop(
            0, STEPS, lambda at, state: advance(state, xs[at], weight), jnp.zeros(N)
        )

    return Work(lambda: jax.block_until_ready(run(xs, weight)), inputs=(xs, weight))
