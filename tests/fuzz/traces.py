"""Traces of strangers: a scenario is written of them that can be listed and run, or one line says
why not.
"""

import gzip
import io
import json
import lzma
from contextlib import redirect_stdout
from functools import cache

from recorded import CORPUS
from traces import call, document, event, kernel

from fuzz.mutations import LINES, NAMES, mutated_bytes, mutated_json
from gpulab.catalog.catalog import read_file
from gpulab.headless.from_trace import from_trace
from gpulab.options import Options, UsageError

_OPERATIONS = (
    *("mm", "addmm", "mul", "embedding", "nll_loss_backward", "cat", "_foreach_mul_", "sum", "to"),
    *("max_pool2d_with_indices_backward", "lambda", "None", "_3d", "_", "é", "gelu", "item", "x.y"),
)
_TYPES = ("float", "float", "c10::Half", "long int", "bool", "Scalar", "ScalarList", "TensorList")
_SCALARS = (
    *("", "2", "-1", "0.5", "1e-05", "True", "inf", "-inf", "nan", "[1, 2]", "[]", "[True]", "007"),
    *("0x" + "f" * 6000, "9" * 5000, "1e999", "[1e999]", "[0x" + "f" * 6000 + "]", "None", "'a'"),
    *("(" * 500, "-" * 5000 + "1", "[" * 300 + "]" * 300, "1 if 1 else 2", "__import__('os')"),
)
_SIZES = (0, 1, 2, 8, 64, 1024, -1, 2**40, 2**63, 10**30, int("9" * 4000), 2.0, "8", None, [8], {})


def case(random):
    """The bytes of one."""
    if random.randrange(3) == 0:
        start = random.randrange(len(_recorded()) - 40)
        data = {"traceEvents": _recorded()[start : start + 40]}
    else:
        data = document(*_step(random))
    data = json.dumps(data)
    data = mutated_json(random, data) if random.randrange(3) else data.encode()
    if random.randrange(4) == 0:
        data = mutated_bytes(random, data)
    if random.randrange(60) == 0:
        data = data.replace(b"[", b"[" + random.choice(LINES) * 200, 1)
    if random.randrange(4) == 0:
        data = gzip.compress(data, 1)
        data = mutated_bytes(random, data) if random.randrange(3) == 0 else data
    return data


def check(data, folder):
    """UsageError is the only refusal, and leaves nothing behind."""
    trace = folder / "t.json"
    written = folder / "t_operations.py"
    written.unlink(missing_ok=True)
    trace.write_bytes(data)
    problem = ""
    try:
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
            from_trace([str(trace), str(written)], Options())
    except UsageError as error:
        problem = str(error)
    assert len(problem) < 5_000
    assert written.exists() == (not problem)
    assert problem or read_file(written).error is None


def _step(random):
    """Operations of a host, some of which launch kernels."""
    places = range(random.randrange(1, 9))
    events = [_operation(random, 100 * place) for place in places]
    for place in range(random.choice((0, 0, 2))):
        start = 100 * place
        events += [call("cudaLaunchKernel", start, start + 1, place)]
        events += [kernel(start + 50, start + 90, place)]
    return events


def _operation(random, start):
    odd = random.choice((0.0, 0.0, 0.05, 0.5))
    kinds = ["float", *(random.choice(_TYPES) for _ in range(random.choice((0, 1, 2, 7))))]
    dims = [_dims(random, kind, odd) for kind in kinds]
    name = random.choice(NAMES if random.random() < odd else _OPERATIONS)
    return event(
        "cpu_op",
        f"aten::{name}",
        start,
        start + random.choice((1, 50, 99, 250)),
        **{
            "Input Dims": dims,
            "Input Strides": dims if random.random() < odd else [[1] * len(size) for size in dims],
            "Input type": kinds,
            "Concrete Inputs": [
                random.choice(_SCALARS if random.random() < odd else _SCALARS[:12]) for _ in kinds
            ],
        },
    )


def _dims(random, kind, odd):
    if kind == "TensorList":
        return [_dims(random, "", odd) for _ in range(random.choice((0, 1, 3)))]
    sizes = _SIZES if random.random() < odd else _SIZES[:6]
    return [random.choice(sizes) for _ in range(random.choice((0, 1, 2, 4)))]


@cache
def _recorded():
    """Events of a recorded step."""
    with lzma.open(CORPUS / "traces" / "transformer-step-h200.json.xz") as file:
        return json.load(file)["traceEvents"]
