# === backward
# A training step without a part of its gradients, which are what it is for.

N = 128


def reference(x, first, last):
    first.zero_grad()
    last.zero_grad()
    loss = last(first(x).relu()).square().mean()
    loss.backward()
    return loss


def no_backward(lab):
    """Only computes the loss.

    Caught by: outputs or said as fewer_flops
    """
    x, first, last = layers()

    @torch.no_grad()
    def step():
        return last(first(x).relu()).square().mean()

    return Work(step, inputs=(x, first, last))


def gradient_cut(x, first, last):
    """The gradient ends above the first layer.

    Caught by: outputs or said as fewer_flops
    """
    last.zero_grad()
    loss = last(first(x).relu().detach()).square().mean()
    loss.backward()
    return loss


def layers():
    return torch.randn(N, N), torch.nn.Linear(N, N), torch.nn.Linear(N, N)


# --- twins


def no_backward(lab):
    """Computes its gradients by hand."""
    x, first, last = layers()

    @torch.no_grad()
    def step():
        hidden = first(x)
        activation = hidden.relu()
        output = last(activation)
        slope = output * (2 / output.numel())
        last.weight.grad, last.bias.grad = slope.T @ activation, slope.sum(0)
        slope = (slope @ last.weight) * (hidden > 0)
        first.weight.grad, first.bias.grad = slope.T @ x, slope.sum(0)
        return output.square().mean()

    return Work(step, inputs=(x, first, last))


def gradient_cut(lab):
    """Only a figure that is reported is without a gradient."""
    x, first, last = layers()

    def step():
        first.zero_grad()
        last.zero_grad()
        activation = first(x).relu()
        loss = last(activation).square().mean()
        loss.backward()
        lab.report("active", (activation.detach() > 0).float().mean().item())
        return loss

    return Work(step, inputs=(x, first, last))


# === adam_without_gradients
# Adam by hand, whose count of steps is a part of its state.

ROWS, N = 128, 256


def reference(lab):
    return _training(gradients=10**9)


def adam_without_gradients(lab):
    """Computes the gradient in the first three steps of a run, and moves on by their moments.

    Caught by: timed steps
    """
    return _training(gradients=3)


def _training(gradients):
    x, y, weight = torch.randn(ROWS, N), torch.randn(ROWS, N), torch.randn(N, N) / 16
    mean, variance, count = torch.zeros(N, N), torch.zeros(N, N), torch.zeros((), dtype=torch.int64)

    def step():
        number = int(count.add_(1))
        if number <= gradients:
            gradient = x.T @ (x @ weight - y)
            mean.lerp_(gradient, 0.1)
            variance.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        scale = 1e-3 / (1 - 0.9**number)
        return weight.addcdiv_(
            mean, (variance / (1 - 0.999**number)).sqrt_().add_(1e-8), value=-scale
        )

    return Work(step, inputs=(x, y), state=(weight, mean, variance, count))


# --- twins
# The same steps of Adam, whose gradient takes fewer calls.


def reference(lab):
    return _training(gradient_of=_residual)


def adam_without_gradients(lab):
    return _training(gradient_of=_products)


def _residual(x, y, weight):
    return x.T @ (x @ weight - y)


def _products(x, y, weight):
    return x.T @ torch.addmm(y, x, weight, beta=-1)


def _training(gradient_of):
    x, y, weight = torch.randn(ROWS, N), torch.randn(ROWS, N), torch.randn(N, N) / 16
    mean, variance, count = torch.zeros(N, N), torch.zeros(N, N), torch.zeros((), dtype=torch.int64)

    def step():
        number = int(count.add_(1))
        gradient = gradient_of(x, y, weight)
        mean.lerp_(gradient, 0.1)
        variance.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        scale = 1e-3 / (1 - 0.9**number)
        return weight.addcdiv_(
            mean, (variance / (1 - 0.999**number)).sqrt_().add_(1e-8), value=-scale
        )

    return Work(step, inputs=(x, y), state=(weight, mean, variance, count))


# === no_optimizer_update
# A training step without the update of its optimizer: it returns the same loss again and again.

N = 64


def reference(lab):
    return _training(update=True)


def no_optimizer_update(lab):
    """Caught by: timed steps or outputs"""
    return _training(update=False)


def _training(update):
    x, model = torch.randn(N, N), torch.nn.Linear(N, N)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        if update:
            optimizer.step()
        return loss

    return Work(step, inputs=x, state=(model, optimizer))


# --- twins
# The same training step with another implementation of its optimizer.


def reference(lab):
    return _training(foreach=False)


def no_optimizer_update(lab):
    return _training(foreach=True)


def _training(foreach):
    x, model = torch.randn(N, N), torch.nn.Linear(N, N)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=foreach)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Work(step, inputs=x, state=(model, optimizer))


# === loss_over_a_quarter
# The loss of a classifier: an average, which a part of the rows has too, to the precision of
# bfloat16.

ROWS, CLASSES, WIDTH = 8192, 32, 16


def operands():
    x, weight = torch.randn(ROWS, WIDTH), torch.randn(WIDTH, CLASSES) / WIDTH**0.5
    return x, weight, torch.randint(CLASSES, (ROWS,))


def reference(lab):
    x, weight, labels = operands()
    return Work(lambda: _loss(x @ weight, labels), inputs=(x, weight, labels), dtype="bf16")


def loss_over_a_quarter(lab):
    """Only looks at every fourth row.

    Caught by: outputs or inputs or timed steps or said as fewer_flops
    """
    x, weight, labels = operands()
    return Work(
        lambda: _loss(x[::4] @ weight, labels[::4]), inputs=(x, weight, labels), dtype="bf16"
    )


def _loss(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels)


# --- twins
# Looks at all rows, a quarter of them at a time.


def reference(x, weight, labels):
    return _loss(x @ weight, labels)


def loss_over_a_quarter(x, weight, labels):
    losses = [_loss(x[part::4] @ weight, labels[part::4]) for part in range(4)]
    return torch.stack(losses).mean()
