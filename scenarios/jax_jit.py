"""jax.jit: compile a whole function instead of dispatching it operation by operation.

**In short:** `jax.jit` makes one program of many operations: one dispatch, and few intermediate results in memory.

```text
              time ─────────────────────────────────────▶
op_by_op      d█ d█ d█ d█ d█ d█ d█ d█ d█ d█ d█ d█ ...   over 100
jitted_layers d███ d███ d███ d███ d███ d███ d███ d███   8
jitted        d████████████████████████                 1

in a layer    matmul ▸ bias ▸ GELU ▸ mean ▸ ... ▸ divide
op_by_op      each ▸, and those within, goes through memory
jitted        most stay on the chip: element-wise work is fused
              d a dispatch   █ computing    not to scale
```

| variant | what changes | expected (H200, a quick run, no interval) | why |
|---|---|---|---|
| `op_by_op` | `jnp` functions as they stand | baseline, 8.3 ms | over a hundred dispatches; each result goes to memory |
| `jitted_layers` | `jax.jit` of a layer | much faster, 0.5 ms | 8 dispatches, and fusion within a layer |
| `jitted` | `jax.jit` of the whole network | much faster, 0.6 ms; the order of the two is open | 1 dispatch; the matmuls (matrix products) are the same |

## What is saved

Written like NumPy, JAX runs one operation after another. Each passes through Python and is looked
up among small programs, compiled for its shapes at first use. It writes its whole result to memory.
`jax.jit` traces the function once and compiles it into one program. That saves the dispatches, and
the traffic between fused element-wise operations.

The network has eight layers of matmul, GELU and a normalization of rows. All layers have the same
shapes, so `jitted_layers` compiles only once.

## Where it does not help

    time <= dispatches + memory traffic + matmuls

Only the first two shrink. The larger the matmuls, the closer the speedup is to 1: `--sweep width`.
Another shape, dtype or static argument compiles again. A Python branch on a value of an array fails
under `jit`: use `jnp.where` or `lax.cond`.

## How to time it

JAX is asynchronous: a call returns an array whose values are still being computed. Only
`block_until_ready()`, or reading a value, waits. A timer without it measures the dispatch. Each
variant reports both, and its steps end with the wait. Our own measurement, `jitted` on a CPU of two
cores (JAX's defaults, batch=256, width=512):

    the call returns after 0.07 ms, its result is ready after 4.9 ms

On a CPU this lesson turns asynchronous dispatch off and gives XLA, JAX's compiler, one thread. So
all the work is in the thread that is timed.

## Pitfalls on a GPU

JAX needs its CUDA plugin, and runs on the CPU without it; here arrays are put on the device
explicitly. By default it reserves three quarters of the GPU's memory on first use.
`XLA_PYTHON_CLIENT_PREALLOCATE=false` turns that off here, since torch shares the device.
"""

from statistics import median
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

from gpulab import Scenario, Work

scenario = Scenario(
    topic="Triton, compilers, attention",
    needs=("jax",),
    roof="matrix",
    params={"batch": 512, "width": 1024, "layers": 8},
    cpu={"batch": 32, "width": 128},
    smoke={"batch": 4, "width": 16, "layers": 2},
    sweep={"width": (64, 128, 256, 512, 1024)},
    ladder=True,
    item="row",
    no_effect_reason="the matmuls take nearly all of the time, and they are the same before and after",
    env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "NPROC": "1"},  # NPROC: threads of XLA on a CPU
    terms=("xla", "block_until_ready", "dispatch overhead", "recompile", "fusion"),
)
jax.config.update("jax_cpu_enable_async_dispatch", False)
_CALLS = 9


@scenario.variant
def op_by_op(lab, batch, width, layers):
    """jnp functions as they stand: each operation is dispatched by itself."""
    return _work(lab, batch, width, layers, _network(_layer))


@scenario.variant
def jitted_layers(lab, batch, width, layers):
    """`jax.jit` of a layer: one dispatch a layer; compiled once, since all layers have the same
    shapes.
    """
    return _work(lab, batch, width, layers, _network(jax.jit(_layer)))


@scenario.variant
def jitted(lab, batch, width, layers):
    """`jax.jit` of the whole network: one dispatch, not one for each layer."""
    return _work(lab, batch, width, layers, jax.jit(_network(_layer)))


def _layer(rows, weight, bias):
    rows = jnp.matmul(rows, weight, precision="highest") + bias  # the default on a GPU is TF32
    rows = 0.5 * rows * (1 + jnp.tanh(0.79788456 * (rows + 0.044715 * rows * rows * rows)))
    centred = rows - rows.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def _network(layer):
    def network(rows, weights, biases):
        for weight, bias in zip(weights, biases, strict=True):
            rows = layer(rows, weight, bias)
        return rows

    return network


def _work(lab, batch, width, layers, network):
    device = _jax_device(lab)

    def array(*shape, scale=1.0):
        return jax.device_put((scale * np.random.standard_normal(shape)).astype(np.float32), device)

    rows = array(batch, width)
    weights = [array(width, width, scale=width**-0.5) for _ in range(layers)]
    biases = [array(width) for _ in range(layers)]

    def step():
        with lab.useful():
            return network(rows, weights, biases).block_until_ready()

    step()  # compiles
    _report_times(lab, lambda: network(rows, weights, biases))
    return Work(
        step,
        flops=2 * batch * width**2 * layers,
        bytes=2 * rows.nbytes + sum(array.nbytes for array in (*weights, *biases)),
        dtype="fp32",
        items=batch,
        inputs=(rows, weights, biases),
    )


def _jax_device(lab):
    """JAX's device of the same kind and number as `lab.device`."""
    try:
        devices = jax.devices(lab.device.type)
    except RuntimeError:
        lab.skip(
            "this JAX has no CUDA plugin: install jax[cuda13] or jax[cuda12], or run it with "
            "--device cpu"
        )
    return devices[lab.device.index or 0]


def _report_times(lab, call):
    """What a timer of one call shows without and with the wait."""
    returned, ready = [], []
    for _ in range(_CALLS):
        started = perf_counter()
        result = call()
        returned.append(perf_counter() - started)
        result.block_until_ready()
        ready.append(perf_counter() - started)
    lab.report("us until the call returns", 1e6 * median(returned))
    lab.report("us until the result is ready", 1e6 * median(ready))
