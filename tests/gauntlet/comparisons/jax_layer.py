"""A layer in JAX: compiled or not, waited for or not."""

import jax

from gpulab import Scenario, Work

scenario = Scenario("comparisons", needs=("jax",))
ROWS, N = 64, 128


def operands():
    keys = jax.random.split(jax.random.key(0), 2)
    return jax.random.normal(keys[0], (ROWS, N)), jax.random.normal(keys[1], (N, N))


def layer(x, weight):
    hidden = x @ weight
    return jax.nn.gelu(hidden - hidden.mean(1, keepdims=True))


@scenario.variant
def eager(lab):
    x, weight = operands()
    return Work(lambda: layer(x, weight), inputs=(x, weight))


@scenario.variant
def jitted(lab):
    x, weight = operands()
    compiled = jax.jit(layer)
    return Work(lambda: compiled(x, weight), inputs=(x, weight))


@scenario.variant
def waited_for(lab):
    x, weight = operands()
    compiled = jax.jit(layer)
    return Work(lambda: compiled(x, weight).block_until_ready(), inputs=(x, weight))


@scenario.variant
def mapped(lab):
    x, weight = operands()
    compiled = jax.jit(jax.vmap(lambda row, weight: layer(row[None], weight)[0], (0, None)))
    return Work(lambda: compiled(x, weight), inputs=(x, weight))
