"""CUDA graphs: launch a whole training step at once.

A training step of a small model is a hundred short kernels, and Python needs longer to launch each than the device to
run it: the device waits for the host. A graph records the launches once and replays all of them with a single call.
It replays *these* kernels on *these* addresses, so each batch is copied into a buffer that never moves, which is part
of the time here, and the optimizer keeps its step count on the device (`capturable=True`, in both variants).

The gain is the time the device waited. With long kernels the launches were hidden behind them and nothing is left to
gain: sweep the width and watch the curve fall to 1. Claims of 195x are not from end to end: a few times is a good
result for a whole step.

What cannot be captured is whatever needs the host inside the step. `loss.item()`, a copy from pageable memory or a
`synchronize()` end the capture with "operation not permitted when stream is capturing", as there is nothing yet to
wait for; so does a library that sets itself up on its first call, which is why three steps go before, on a side
stream. Worse is what is captured and wrong: an `if` on data is recorded as it went that once, a Python number such as
a learning rate is frozen, and a batch of another shape needs a graph of its own. An optimizer whose step count lives
on the host refuses to be captured for that reason.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    needs=("cuda",),
    roof="launch",
    params={"width": 256, "batch": 64, "layers": 6, "batches": 8},
    smoke={"width": 32, "batch": 8, "layers": 2, "batches": 2},
    sweep={"width": (128, 256, 512, 1024, 2048, 4096)},
    no_effect_reason="its kernels outlast their launches, which were hidden behind them before",
    claim="50-70 % of the launch overhead removed, up to 195x",
)


@scenario.variant
def eager(lab, width, batch, layers, batches):
    """Every kernel of every training step is launched from Python."""
    return _training(lab, width, batch, layers, batches, lambda lab, train, rows, state: train)


@scenario.variant
def graphed(lab, width, batch, layers, batches):
    """Each training step is one copy into the static batch, and one replay."""
    return _training(lab, width, batch, layers, batches, _captured)


def _captured(lab, train, rows, state):
    """A function that replays `train` on a batch; what was changed on the way there is put back."""
    static, saved, side = rows.clone(), [tensor.detach().clone() for tensor in state], torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train(static)
    with torch.no_grad():
        torch._foreach_copy_(state, saved)

    def replay(batch):
        with lab.phase("copy"):
            static.copy_(batch)
        graph.replay()
        return loss  # the same tensor every time: whoever keeps it must copy it

    return replay


def _training(lab, width, batch, layers, batches, prepare):
    data = torch.randn(batches, batch, width, device=lab.device)
    blocks = [block for _ in range(layers) for block in (torch.nn.Linear(width, width), torch.nn.GELU())]
    model = torch.nn.Sequential(*blocks, torch.nn.Linear(width, width)).to(lab.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=True)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()  # makes the moments, which are part of the state
    losses = torch.empty(batches, device=lab.device)

    def train(rows):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(rows), rows)
        loss.backward()
        optimizer.step()
        return loss.detach()

    moments = [tensor for state in optimizer.state.values() for tensor in state.values()]
    run = prepare(lab, train, data[0], [*model.parameters(), *moments])

    def step():
        for index, rows in enumerate(data):
            with lab.useful():
                losses[index] = run(rows)

    weights = sum(weight.numel() for weight in model.parameters() if weight.dim() == 2)
    return Work(
        step,
        flops=batches * batch * (6 * weights - 2 * width**2),  # nobody asks for the input's gradient
        dtype="fp32",
        items=batches * batch,
        inputs=data,
        state=(model, optimizer),
        output=(losses, *model.parameters()),
    )
