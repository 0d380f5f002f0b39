# === replaced
# --- twins
# Honest twins of those cheats that replace functions of the lab.

import concurrent.futures
import sys
import tempfile
import time
import types

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def clock_patched(lab):
    """Its step looks at a clock of its own, and reports what it saw."""
    a, b = operands()

    def step():
        started = time.perf_counter()
        result = a @ b
        lab.report("gemm_s", time.perf_counter() - started)
        return result

    return Work(step, inputs=(a, b))


def clock_patched_for_a_while(lab):
    """Holds something for as long as it is built, and lets it go."""
    a, b = operands()
    with tempfile.TemporaryFile() as file:
        yield Work(lambda: a @ b, inputs=(a, b))
        file.write(b"done")


def comparison_patched(lab):
    """Compares by itself, within its step, what it computes in two ways."""
    a, b = operands()

    def step():
        result = a @ b
        assert torch.equal(result, result)
        return result

    return Work(step, inputs=(a, b))


def comparison_patched_for_a_while(lab):
    """Has a function of the lab's name that is its own."""
    a, b = operands()

    def agree(output):
        return output

    return Work(lambda: agree(a @ b), inputs=(a, b))


def poison_patched(lab):
    """Poisons its own buffer before it writes to it."""
    a, b = operands()
    out = torch.empty(N, N)
    return Work(lambda: torch.mm(a, b, out=out.fill_(float("nan"))), inputs=(a, b))


def wait_patched(lab):
    """Waits by itself for each array before it returns it."""
    a, b = operands()
    pool = concurrent.futures.ThreadPoolExecutor(1)

    sys.modules.setdefault("jaxlib", types.ModuleType("jaxlib"))

    class Array:
        __module__ = "jaxlib"

        def __init__(self):
            self._future = pool.submit(torch.mm, a, b)

        def block_until_ready(self):
            self._future.result()
            return self

        def __dlpack__(self, **options):
            return self._future.result().__dlpack__(**options)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    return Work(lambda: Array().block_until_ready(), inputs=(a, b))


def clock_hides_a_little(lab):
    """Looks at a clock of its own, and reports the time without what looking took."""
    a, b = operands()

    def step():
        started = time.perf_counter()
        result = a @ b
        lab.report("gemm_s", (time.perf_counter() - started) * 0.93)
        return result

    return Work(step, inputs=(a, b))


# === clock_patched
# Its build makes the lab's clock run slower, and leaves it so.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def clock_patched(lab):
    """Caught by: lab_functions_replaced or timer or clock_disagrees"""
    a, b = operands()
    from gpulab.engine.measure import clock

    counted = clock.perf_counter_ns
    clock.perf_counter_ns = lambda: counted() // 2
    return Work(lambda: a @ b, inputs=(a, b))


# === clock_patched_for_a_while
# The lab's clock runs slower while blocks are timed, and is put back when the build is let go.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def clock_patched_for_a_while(lab):
    """Caught by: lab_functions_replaced"""
    a, b = operands()
    from gpulab.engine.measure import clock

    counted = clock.perf_counter_ns
    clock.perf_counter_ns = lambda: counted() // 2
    yield Work(lambda: a @ b, inputs=(a, b))
    clock.perf_counter_ns = counted


# === clock_hides_a_little
# Hides 7 % of the time of its own steps, and puts the lab's clock back when the build is let
# go.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def clock_hides_a_little(lab):
    """Caught by: lab_functions_replaced or timer or clock_disagrees"""
    a, b = operands()
    from gpulab.engine.measure import clock

    counted, hidden_ns = clock.perf_counter_ns, [0]

    def step():
        started = counted()
        result = a @ b
        hidden_ns[0] += (counted() - started) * 7 // 100
        return result

    clock.perf_counter_ns = lambda: counted() - hidden_ns[0]
    yield Work(step, inputs=(a, b))
    clock.perf_counter_ns = counted


# === comparison_patched
# Puts a comparison that always agrees in the place of the lab's.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def comparison_patched(lab):
    """Caught by: lab_functions_replaced or context and output"""
    a, b = operands()
    from gpulab.engine.build import tensors

    tensors.agree = lambda output, reference, *, tolerance=None, dtypes=(): tensors.Agreement(
        True, 0.0, 1e-4
    )
    out = torch.zeros(N, N)
    return Work(lambda: out.fill_(1.0), inputs=(a, b))


# === comparison_patched_for_a_while
# The lab's comparison always agrees for as long as this variant is built, and is put back then.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def comparison_patched_for_a_while(lab):
    """Caught by: lab_functions_replaced or null answers"""
    a, b = operands()
    from gpulab.engine.build import tensors

    agree = tensors.agree
    tensors.agree = lambda output, reference, **how: agree(reference, reference, **how)
    out = torch.zeros(N, N)
    yield Work(lambda: out.fill_(1.0), inputs=(a, b))
    tensors.agree = agree


# === poison_patched
# Takes the poison away that the lab puts into outputs between two steps, and returns what it once
# computed.

N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def poison_patched(lab):
    """Caught by: lab_functions_replaced"""
    a, b = operands()
    from gpulab.engine.build import tensors

    tensors.poison = lambda tensors: None
    out = a @ b
    return Work(lambda: out, inputs=(a, b))


# === wait_patched
# Returns an array that is computed in a thread, and takes the lab's waiting away.

import concurrent.futures
import sys
import types

N = 384


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


def wait_patched(lab):
    """Caught by: lab_functions_replaced or timer"""
    a, b = operands()
    from gpulab.engine.measure import clock as waiting

    waiting.wait_for = lambda result: None
    pool = concurrent.futures.ThreadPoolExecutor(1)

    sys.modules.setdefault("jaxlib", types.ModuleType("jaxlib"))

    class Array:
        __module__ = "jaxlib"

        def __init__(self):
            self._future = pool.submit(torch.mm, a, b)

        def block_until_ready(self):
            self._future.result()
            return self

        def __dlpack__(self, **options):
            return self._future.result().__dlpack__(**options)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    return Work(Array, inputs=(a, b))


# === helper_doubled
# Makes the baseline slower: a helper of the file, which the baseline calls, is replaced.

N = 192


def product(a, b):
    return a @ b


def reference(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: product(a, b), inputs=(a, b))


def helper_doubled(lab):
    """Caught by: variants alone or baseline_slowed"""
    a, b = torch.randn(N, N), torch.randn(N, N)
    globals()["product"] = lambda a, b: (a @ b, a @ b)[1]
    return Work(lambda: a @ b, inputs=(a, b))


# === patched_torch
# Makes the baseline slower: its build puts a function of its own in the place of torch's.

N = 192


def reference(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: torch.relu(torch.mm(a, b)), inputs=(a, b))


def patched_torch(lab):
    """Caught by: set_while_building or lab_functions_replaced"""
    a, b = torch.randn(N, N), torch.randn(N, N)
    mm, relu = torch.mm, torch.relu

    def slow(first, second):
        mm(first, second)
        return mm(first, second)

    torch.mm = slow
    return Work(lambda: relu(mm(a, b)), inputs=(a, b))


# --- twins
# Has names of its own for functions of torch.


def patched_torch(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    product, rectified = torch.mm, torch.nn.functional.relu
    return Work(lambda: rectified(product(a, b)), inputs=(a, b))


# === numpy_sort_replaced
# Makes the baseline slower: a function of NumPy is replaced by one that does it twice.

import numpy as np

N = 1 << 12


def reference(lab):
    x = torch.randn(N).numpy()
    return Work(lambda: np.sort(x), inputs=x)


def numpy_sort_replaced(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building or
    lab_functions_replaced
    """
    x = torch.randn(N).numpy()
    sort = np.sort

    def slow(array):
        sort(array)
        return sort(array)

    np.sort = slow
    return Work(lambda: sort(x), inputs=x)


# === overridden_in_the_dispatcher
# Makes the baseline slower: what it calls is replaced below torch, in the dispatcher.

N = 256
OVERRIDES = torch.library.Library("aten", "IMPL")


def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: torch.erf(x), inputs=x)


def overridden_in_the_dispatcher(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building or
    lab_functions_replaced
    """
    x = torch.randn(N, N)
    out = torch.empty(N, N)

    def slow(x):
        torch.special.erf(x, out=torch.empty_like(x))
        return torch.special.erf(x, out=torch.empty_like(x))

    OVERRIDES.impl("erf", slow, "CPU", allow_override=True)
    return Work(lambda: torch.erf(x, out=out), inputs=x)


# === configured_for_all
# Makes the baseline slower: its build sets a number of the module that the baseline goes by.

N = 256
CONFIG = {"rows at a time": 128}


def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: softmax_in_pieces(x), inputs=x)


def configured_for_all(lab):
    """Caught by: variants alone or baseline_slowed"""
    x = torch.randn(N, N)
    CONFIG["rows at a time"] = 4
    return Work(lambda: x.softmax(1), inputs=x)


def softmax_in_pieces(x):
    return torch.cat([piece.softmax(1) for piece in x.split(CONFIG["rows at a time"])])


# === set_by_each_build
# Each build sets what the steps of all go by, as a framework's configuration does: the last one
# wins.

N = 256
SETTINGS = {}


def reference(lab):
    return softmax(rows_at_a_time=4)


def set_by_each_build(lab):
    """By accident, and not to its advantage: beside the other it is as slow, or the other as fast.

    Caught by: variants alone or baseline_slowed
    """
    return softmax(rows_at_a_time=128)


def softmax(rows_at_a_time):
    SETTINGS["rows at a time"] = rows_at_a_time
    x = torch.randn(N, N)

    def step():
        return torch.cat([piece.softmax(1) for piece in x.split(SETTINGS["rows at a time"])])

    return Work(step, inputs=x)


# === shared_with_all
# Makes the baseline slower by what all variants of the file go by.

N, LAYERS = 16, 24
WEIGHT = torch.randn(N, N, generator=torch.Generator().manual_seed(5)) / 4
TYPE = torch.float32


def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: layers(x, WEIGHT, TYPE), inputs=x)


def weight_with_a_gradient(lab):
    """Lets autograd record what is done with the weight that all share, and takes it from there for
    itself.

    Caught by: variants alone or baseline_slowed
    """
    x, own = torch.randn(N, N), WEIGHT.detach()
    WEIGHT.requires_grad_()
    return Work(lambda: layers(x, own, torch.float32), inputs=x)


def type_for_all(lab):
    """Sets the type that all compute in to one of twice the size, and computes in another.

    Caught by: variants alone or baseline_slowed
    """
    x = torch.randn(N, N)
    globals()["TYPE"] = torch.float64
    return Work(lambda: layers(x, WEIGHT, torch.float32), inputs=x)


def layers(x, weight, dtype):
    for _ in range(LAYERS):
        x = (x.to(dtype) @ weight.to(dtype)).tanh().float()
    return x


# --- twins
# They change what is their own.


def weight_with_a_gradient(lab):
    """Has a copy of the weight, which autograd records, but not in its steps."""
    x, own = torch.randn(N, N), WEIGHT.clone().requires_grad_()
    return Work(torch.no_grad()(lambda: layers(x, own, TYPE)), inputs=x)


def type_for_all(lab):
    """Has a type of its own, the same."""
    x, dtype = torch.randn(N, N), torch.get_default_dtype()
    return Work(lambda: layers(x, WEIGHT, dtype), inputs=x)


# === hooked_modules
# Makes the baseline slower: a hook on all modules, of which it uses none itself.

N = 64


def reference(lab):
    x, model = torch.randn(N, N), torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU())
    return Work(torch.no_grad()(lambda: model(x)), inputs=(x, model))


def hooked_modules(lab):
    """Caught by: variants alone or baseline_slowed"""
    x, model = torch.randn(N, N), torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU())
    (weight, bias), wasted = model[0].parameters(), torch.empty(256, 256)
    torch.nn.modules.module.register_module_forward_hook(
        lambda *call: wasted.fill_(1.0).exp_() is None or None
    )
    return Work(torch.no_grad()(lambda: torch.addmm(bias, x, weight.T).relu_()), inputs=(x, model))


# === traced
# Makes the baseline slower: a tracer looks at every call of Python, of which the baseline makes
# many.

import sys

N = 64


def reference(lab):
    x = torch.randn(N)
    return Work(lambda: torch.stack([doubled(value) for value in x]), inputs=x)


def traced(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building or
    lab_functions_replaced
    """
    x = torch.randn(N)
    sys.setprofile(lambda frame, event, argument: sum(range(50)))
    return Work(lambda: torch.stack(list((x * 2).unbind())), inputs=x)


def doubled(value):
    return value * 2
