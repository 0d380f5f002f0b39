# === adam
# A step of Adam over a few small layers.

N, LAYERS = 48, 6


def loop(lab):
    return _training(foreach=False)


def foreach(lab):
    return _training(foreach=True)


def fused(lab):
    return _training(fused=True)


def _training(**implementation):
    parameters = [torch.randn(N, N, requires_grad=True) for _ in range(LAYERS)]
    gradients = [torch.randn(N, N) for _ in parameters]
    optimizer = torch.optim.Adam(parameters, lr=1e-2, **implementation)

    def step():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        return parameters

    return Work(step, inputs=gradients, state=(parameters, optimizer))


# === batches
# An epoch over a small data set: by hand, by a generator, by a loader, ahead in a thread.

import itertools
import queue
import threading

SAMPLES, BATCH, N = 512, 128, 64


def operands():
    return torch.randn(SAMPLES, N), torch.randn(N, N)


def slices(data, weight):
    return sum((batch @ weight).relu().sum(0) for batch in data.split(BATCH))


def generator(lab):
    data, weight = operands()

    def batches():
        for at in range(0, SAMPLES, BATCH):
            yield {"x": data[at : at + BATCH]}

    return Work(
        lambda: sum((batch["x"] @ weight).relu().sum(0) for batch in batches()),
        inputs=(data, weight),
    )


def loader(lab):
    data, weight = operands()
    batches = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(data), BATCH, num_workers=0
    )
    return Work(lambda: sum((x @ weight).relu().sum(0) for (x,) in batches), inputs=(data, weight))


def endless_iterator(lab):
    """An iterator that begins anew where it ends."""
    data, weight = operands()
    batches = itertools.cycle(data.split(BATCH))

    def step():
        chosen = itertools.islice(batches, SAMPLES // BATCH)
        return sum((batch @ weight).relu().sum(0) for batch in chosen)

    return Work(step, inputs=(data, weight))


def ahead_in_a_thread(data, weight):
    waiting = queue.SimpleQueue()
    thread = threading.Thread(
        target=lambda: [waiting.put(batch.clone()) for batch in data.split(BATCH)]
    )
    thread.start()
    total = sum((waiting.get() @ weight).relu().sum(0) for _ in range(SAMPLES // BATCH))
    thread.join()
    return total


def no_loop(lab):
    data, weight = operands()
    return Work(
        lambda: (data @ weight).relu().sum(0), inputs={"data": data, "model": {"weight": weight}}
    )


# === checkpointing
# Activations that are kept, or computed again.

from torch.utils.checkpoint import checkpoint

N = 64


def operands():
    return torch.randn(N, N, requires_grad=True), [torch.randn(N, N) / 8 for _ in range(4)]


def _layers(x, weights):
    for weight in weights:
        x = (x @ weight).tanh()
    return x


def _gradient(x, loss):
    return torch.autograd.grad(loss, x)[0]


def kept(x, weights):
    return _gradient(x, _layers(x, weights).sum())


def computed_again(x, weights):
    return _gradient(x, checkpoint(_layers, x, weights, use_reentrant=False).sum())


def half_of_them(x, weights):
    middle = checkpoint(_layers, x, weights[:2], use_reentrant=False)
    return _gradient(x, _layers(middle, weights[2:]).sum())


# === compiled
# A _chain of element-wise operations, eager and compiled.

N = 1 << 15


def _chain(x):
    return (x.sigmoid() * x + x.tanh()).square()


def eager(lab):
    x = torch.randn(N)
    return Work(lambda: _chain(x), inputs=x)


def compiled(lab):
    x = torch.randn(N)
    fused = torch.compile(_chain)
    return Work(lambda: fused(x), inputs=x)


# === cross_entropy
# The loss of a classifier.

ROWS, CLASSES = 128, 200


def operands():
    return torch.randn(ROWS, CLASSES) * 3, torch.randint(CLASSES, (ROWS,))


def by_hand(logits, labels):
    probabilities = logits.softmax(1)
    return -probabilities[torch.arange(ROWS), labels].log().mean()


def library(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels)


def one_hot(lab):
    logits, labels = operands()
    targets = torch.nn.functional.one_hot(labels, CLASSES).float()
    return Work(
        lambda: torch.nn.functional.cross_entropy(logits, targets), inputs=(logits, targets)
    )


def gathered(logits, labels):
    chosen = logits.gather(1, labels[:, None])[:, 0]
    return (logits.logsumexp(1) - chosen).mean()


# === dropout
# Dropout by the lab's generator: all variants draw the same numbers.

N = 128


def comparing(lab):
    x = torch.randn(N, N)
    return Work(lambda: x * (torch.rand(N, N, generator=lab.generator) < 0.9) / 0.9, inputs=x)


def selecting(lab):
    x = torch.randn(N, N)
    return Work(
        lambda: torch.where(torch.rand(N, N, generator=lab.generator) < 0.9, x / 0.9, 0.0), inputs=x
    )


def in_place(lab):
    x, draws = torch.randn(N, N), torch.empty(N, N)

    def step():
        draws.uniform_(generator=lab.generator)
        return (x * draws.lt(0.9)).div_(0.9)

    return Work(step, inputs=x)


# === folded_norm
# A layer and its normalisation for inference, or both folded into one in the build.

ROWS, N = 64, 128


def parts():
    linear, norm = torch.nn.Linear(N, N), torch.nn.BatchNorm1d(N)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return (
        linear.eval().requires_grad_(False),
        norm.eval().requires_grad_(False),
        torch.randn(ROWS, N),
    )


def two_layers(lab):
    linear, norm, x = parts()
    return Work(lambda: norm(linear(x)), inputs=x)


def folded(lab):
    linear, norm, x = parts()
    layer = torch.nn.utils.fusion.fuse_linear_bn_eval(linear, norm)
    return Work(lambda: layer(x), inputs=x)


# === gradient
# The gradient of a least-squares loss.

ROWS, N = 128, 64


def operands():
    return torch.randn(ROWS, N), torch.randn(ROWS), torch.randn(N)


def backward(lab):
    x, y, weight = operands()
    weight.requires_grad_()

    def step():
        weight.grad = None
        (x @ weight - y).square().mean().backward()
        return weight.grad

    return Work(step, inputs=(x, y, weight))


def by_hand(x, y, weight):
    return x.T @ (x @ weight - y) * (2 / ROWS)


def autograd_grad(lab):
    x, y, weight = operands()
    weight.requires_grad_()
    return Work(
        lambda: torch.autograd.grad((x @ weight - y).square().mean(), weight)[0],
        inputs=(x, y, weight),
    )


def functional(lab):
    x, y, weight = operands()
    gradient = torch.func.grad(lambda weight: (x @ weight - y).square().mean())
    return Work(lambda: gradient(weight), inputs=(x, y, weight))


# === jacobian
# The Jacobian of a small _function.

N = 12


def operands():
    return torch.randn(N), torch.randn(N, N)


def _function(x, weight):
    return (weight @ x).sin() * x


def row_by_row(lab):
    x, weight = operands()
    x.requires_grad_()

    def step():
        out = _function(x, weight)
        rows = [torch.autograd.grad(element, x, retain_graph=True)[0] for element in out]
        return torch.stack(rows)

    return Work(step, inputs=(x, weight))


def reverse_mode(x, weight):
    return torch.func.jacrev(_function)(x, weight)


def forward_mode(x, weight):
    return torch.func.jacfwd(_function)(x, weight)


def by_hand(x, weight):
    angles = weight @ x
    return (angles.cos() * x)[:, None] * weight + angles.sin().diag()


# === noise
# Noise from a generator that each step seeds.

N = 50_000


def operands():
    return torch.randn(N), torch.Generator()


def new_tensors(lab):
    x, generator = operands()

    def step():
        generator.manual_seed(7)
        return x + 0.1 * (torch.rand(N, generator=generator) - 0.5)

    return Work(step, inputs=x)


def drawn_in_place(lab):
    (x, generator), noise = operands(), torch.empty(N)

    def step():
        generator.manual_seed(7)
        return torch.add(x - 0.05, noise.uniform_(generator=generator), alpha=0.1)

    return Work(step, inputs=x)


# === per_sample_gradients
# The gradient of each sample by itself.

SAMPLES, N = 6, 24


def operands():
    return torch.randn(SAMPLES, N), torch.randn(SAMPLES), torch.randn(N)


def _loss(weight, x, y):
    return (x @ weight - y).square()


def loop(lab):
    x, y, weight = operands()
    gradient = torch.func.grad(_loss)
    return Work(
        lambda: torch.stack(
            [gradient(weight, row, label) for row, label in zip(x, y, strict=True)]
        ),
        inputs=(x, y, weight),
    )


def vmap(lab):
    x, y, weight = operands()
    gradients = torch.func.vmap(torch.func.grad(_loss), (None, 0, 0))
    return Work(lambda: gradients(weight, x, y), inputs=(x, y, weight))


def by_hand(x, y, weight):
    return 2 * (x @ weight - y)[:, None] * x


# === sampling
# Draws from distributions given by logits: other numbers by each method, which cannot be
# compared.

ROWS, N = 64, 128


def multinomial(lab):
    logits = torch.randn(ROWS, N)
    return Work(lambda: logits.softmax(1).multinomial(1)[:, 0], inputs=logits)


@scenario.variant(unchecked="draws other numbers")
def gumbel(lab):
    logits = torch.randn(ROWS, N)
    return Work(
        lambda: (logits - torch.empty_like(logits).exponential_().log()).argmax(1), inputs=logits
    )


def softmax_by_hand(lab):
    """Draws the same numbers as the first."""
    logits = torch.randn(ROWS, N)

    def step():
        exponents = (logits - logits.amax(1, keepdim=True)).exp()
        return exponents.multinomial(1)[:, 0]

    return Work(step, inputs=logits)


# === training_step
# A step of training, its state named in different ways.

ROWS, N = 32, 64


def parts():
    model = torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU(), torch.nn.Linear(N, 1))
    return model, torch.randn(ROWS, N), torch.randn(ROWS, 1)


def by_optimizer(lab):
    model, x, y = parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step():
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Work(step, inputs=(x, y), state=(model, optimizer))


def by_hand(lab):
    model, x, y = parts()
    parameters = list(model.parameters())

    def step():
        loss = (model(x) - y).square().mean()
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss, parameters), strict=True
        ):
            parameter.data.sub_(gradient, alpha=1e-2)
        return loss

    return Work(step, inputs=(x, y), state=parameters)


def gradients_in_two_parts(lab):
    """Half a batch at a time."""
    model, x, y = parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step():
        optimizer.zero_grad()
        total = 0.0
        for rows, labels in zip(x.chunk(2), y.chunk(2), strict=True):
            loss = (model(rows) - labels).square().mean() / 2
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    return Work(step, inputs=[x, y], state=[model, optimizer])
