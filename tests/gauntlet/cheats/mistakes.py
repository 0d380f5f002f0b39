# === whole_numbers
# A histogram of whole numbers, which no arithmetic may change.

import numpy as np

N, BINS = 100_000, 64


def numbers():
    return torch.randint(0, BINS, (N,)).numpy()


def reference(x):
    return np.bincount(x, minlength=BINS)


def kept_after_sixty(lab):
    """Computes for sixty calls, and returns the last of these from then on.

    Caught by: timed steps
    """
    x, left, kept = numbers(), [60], [None]

    def step():
        if left[0]:
            left[0] -= 1
            kept[0] = np.bincount(x, minlength=BINS)
        return kept[0].copy()

    return Work(step, inputs=x)


# --- twins


def kept_after_sixty(lab):
    x = torch.from_numpy(numbers())
    return Work(lambda: torch.bincount(x, minlength=BINS), inputs=x)


# === complex_numbers
# Products of complex numbers.

N = 160


def operands():
    return torch.randn(N, N, dtype=torch.complex64), torch.randn(N, N, dtype=torch.complex64)


def reference(a, b):
    return a @ b


def complex_kept_after_sixty(lab):
    """Caught by: timed steps"""
    a, b = operands()
    left, kept = [60], [None]

    def step():
        if left[0]:
            left[0] -= 1
            kept[0] = a @ b
        return kept[0].clone()

    return Work(step, inputs=(a, b))


# --- twins


def complex_kept_after_sixty(a, b):
    return torch.mm(a, b)


# === results_of_any_values
# Caches that are right for any values: of each a step on values that nobody had before takes its
# time.

N = 160


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def _product(a, b):
    return a @ b @ b @ b


def reference(a, b):
    return _product(a, b)


def cache_of_64_results(lab):
    """Caught by: timed steps"""
    a, b = operands()
    known = []

    def step():
        for left, right, result in known:
            if torch.equal(left, a) and torch.equal(right, b):
                return result.clone()
        known.append((a.clone(), b.clone(), _product(a, b)))
        del known[:-64]
        return known[-1][2].clone()

    return Work(step, inputs=(a, b))


def cache_by_checksum(lab):
    """Caught by: timed steps"""
    a, b = operands()
    known = {}

    def step():
        key = float(a.sum()), float(b.sum())
        if key not in known:
            known[key] = _product(a, b)
        return known[key].clone()

    return Work(step, inputs=(a, b))


# --- twins


def cache_of_64_results(lab):
    a, b = operands()
    out = torch.empty(N, N)
    return Work(lambda: torch.mm(a @ b, b @ b, out=out), inputs=(a, b))


def cache_by_checksum(a, b):
    return torch.linalg.multi_dot([a, b, b, b])


# === one_at_a_time
# Variants that run one at a time.

scenario = Scenario("gauntlet", exclusive=True)
N = 160


def operands():
    return torch.randn(N, N), torch.randn(N, N)


def reference(a, b):
    return a @ b


def cache_where_no_other_is(lab):
    """Caught by: timed steps"""
    a, b = operands()
    known = {}

    def step():
        key = float(a.sum()), float(b.sum())
        if key not in known:
            known[key] = a @ b
        return known[key].clone()

    return Work(step, inputs=(a, b))


# --- twins


def cache_where_no_other_is(lab):
    """Its build takes long."""
    a, b = operands()
    torch.randn(3_000, 3_000).sum()
    return Work(lambda: torch.mm(a, b), inputs=(a, b))


# === futures
# Steps that return what has to be waited for.

from concurrent.futures import Future

N = 160


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.empty(N, N)


def done():
    future = Future()
    future.set_result(None)
    return future


def reference(lab):
    a, b, out = operands()
    return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b))


def cache_behind_a_future(lab):
    """Caught by: timed steps"""
    a, b, out = operands()
    known = {}

    def step():
        key = float(a.sum()), float(b.sum())
        if key not in known:
            known[key] = a @ b
        out.copy_(known[key])
        return done()

    return Work(step, inputs=(a, b), output=out)


def future_kept_after_sixty(lab):
    """Caught by: timed steps"""
    a, b, out = operands()
    left = [60]

    def step():
        if left[0]:
            left[0] -= 1
            torch.mm(a, b, out=out)
        return done()

    return Work(step, inputs=(a, b), output=out)


# --- twins


def cache_behind_a_future(lab):
    a, b, out = operands()

    def step():
        torch.mm(a, b, out=out)
        return done()

    return Work(step, inputs=(a, b), output=out)


def future_kept_after_sixty(lab):
    a, b, out = operands()

    def step():
        out.copy_(a @ b)
        return done()

    return Work(step, inputs=(a, b), output=out)


# === order_of_products
# What decides the order of a chain of products is a switch of the whole process.


def operands():
    return torch.randn(60, 60), torch.randn(60, 60), torch.randn(60)


def reference(a, b, x):
    return torch.einsum("ij,jk,k->i", a, b, x)


def order_switched_off(lab):
    """Caught by: set_while_building"""
    a, b, x = operands()
    torch.backends.opt_einsum.enabled = False
    return Work(lambda: a @ (b @ x), inputs=(a, b, x))


# --- twins


def order_switched_off(a, b, x):
    return a @ (b @ x)


# === gradients
# The loss is returned; the gradients are for whoever updates the weights.

N = 96


def operands():
    return torch.randn(32, N), torch.nn.Linear(N, N)


def _trained(times):
    x, model = operands()

    def step():
        model.zero_grad()
        loss = model(x).square().mean()
        (loss * times).backward()
        return loss.detach()

    return Work(step, inputs=(x, model))


def reference(lab):
    return _trained(1.0)


def gradients_of_two_thirds(lab):
    """Caught by: outputs"""
    return _trained(0.7)


# --- twins


def gradients_of_two_thirds(x, model):
    model.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), torch.zeros(32, N))
    loss.backward()
    return loss.detach()


# === what_later_steps_read
# Running statistics, and averages of weights: each step changes them, and nobody names them.

N = 96


def model():
    return torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.BatchNorm1d(N)).train()


def _averaged(averages, weights):
    with torch.no_grad():
        for average, weight in zip(averages, weights, strict=False):
            average.mul_(0.9).add_(weight, alpha=0.1)


def operands():
    network = model()
    return torch.randn(32, N), network, [torch.zeros_like(p) for p in network.parameters()]


def reference(lab):
    x, network, averages = operands()

    def step():
        output = network(x)
        _averaged(averages, network.parameters())
        return output

    return Work(step, inputs=x)


def without_statistics(lab):
    """Caught by: outputs or said as effects_not_left"""
    x, network, averages = operands()
    linear, norm = network

    def step():
        output = torch.nn.functional.batch_norm(linear(x), None, None, norm.weight, norm.bias, True)
        _averaged(averages, network.parameters())
        return output

    return Work(step, inputs=x)


def without_averages(lab):
    """Caught by: outputs or said as effects_not_left"""
    x, network, _averages = operands()
    return Work(lambda: network(x), inputs=x)


# --- twins


def without_statistics(lab):
    x, network, averages = operands()
    linear, norm = network

    def step():
        output = norm(torch.addmm(linear.bias, x, linear.weight.t()))
        _averaged(averages, network.parameters())
        return output

    return Work(step, inputs=x)


def without_averages(lab):
    x, network, averages = operands()

    def step():
        output = network(x)
        with torch.no_grad():
            torch._foreach_lerp_(averages, list(network.parameters()), 0.1)
        return output

    return Work(step, inputs=x)


# === sorted_in_place
# A sort of what the first step of a block has sorted.

import numpy as np

N = 50_000


def numbers():
    return torch.randn(N).numpy()


def reference(x):
    return np.sort(x, kind="stable")


def sorts_its_state(lab):
    """Caught by: said as first_step_does_more"""
    x = numbers()

    def step():
        x.sort(kind="stable")
        return x

    return Work(step, state=x)


# --- twins


def sorts_its_state(lab):
    x, out = numbers(), np.empty(N, dtype=np.float32)

    def step():
        np.copyto(out, x)
        out.sort(kind="stable")
        return out

    return Work(step, inputs=x)
