"""CUDA graphs: record the launches of a training step once, replay them with one call.

**In short:** where short kernels wait for Python to launch them, one replay of recorded launches removes the waiting.

```text
        time ──────────────────────────────────────▶
eager
 host   ▸   ▸   ▸   ▸   ▸   ▸   ▸   ▸   ▸   ▸       launches each
 device  █   █   █   █   █   █   █   █   █   █      waits between
graphed
 host   ▸▸                                          copy, replay
 device  ▒██████████                                no waiting

        ▸ a call by the host  █ a kernel  ▒ copy into the static batch
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `eager` | Python launches every kernel of every training step | baseline, 15 to 19 ms by its host, goodput 10 to 13 % | the device waits for the host |
| `graphed` | a copy into a buffer that never moves, and one replay | 6.1x to 7.6x, 2.5 ms, goodput 93 % | what remains is the time between kernels (roof "graph node") |
| `item_inside` | reads the loss with `.item()` during a capture | skipped, with CUDA's message | nothing has run yet that could be waited for |

Goodput is here the share of the time in which the device computes.

## What a replay needs

A graph replays *these* kernels on *these* addresses. So each batch is copied into the static
buffer, which is part of the time here. The optimizer keeps its step count on the device
(`capturable=True`), which takes more kernels: 28 a step, two divisions for each of 14 tensors. The
eager variant needs neither and does neither.

## What fails, and what goes wrong silently

- `loss.item()`, a copy from pageable memory and `synchronize()` need the host inside the step: they
  end the capture (the recording).
- A library that sets itself up on its first call fails too. So three steps run before the capture,
  on another stream.
- An optimizer whose step count lives on the host refuses.
- Worse, because no error shows it: an `if` on data always takes the branch of the capture, and a
  Python number such as a learning rate is frozen.
- A batch of another shape needs another graph, and each graph keeps its memory.

## Where it does not help

Long kernels hide their launches. Sweep the width, and watch the gain fall to 1. It falls a little
below where the optimizer's extra passes weigh.

## What the sources say

The quick-start guide says 1.1-2x end to end. Its "up to 195x" needs a GPU that is idle for 99.5 %
of the step, or a timer that does not wait:

    gain <= 1 / (1 - idle share) = 1 / (1 - 0.995) = 200x
"""

import subprocess
import sys

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    needs=("cuda",),
    roof="launch",
    params={"width": 256, "batch": 64, "layers": 6, "batches": 8},
    smoke={"width": 32, "batch": 8, "layers": 2, "batches": 2},
    sweep={"width": (128, 256, 512, 1024, 2048, 4096)},
    item="sample",
    no_effect_reason="its kernels outlast their launches, which were hidden behind them before",
    claim=(
        "performance basics: 50-70 % of the launch overhead removed, < 1 us; quick-start guide: "
        "1.1-2x end to end, up to 195x; our own: 6.1-7.6x (H200)"
    ),
    terms=("launch overhead", "graph capture", "capturable", "static buffer"),
)


@scenario.variant
def eager(lab, width, batch, layers, batches):
    """Every kernel of every training step is launched from Python."""
    return _training(lab, width, batch, layers, batches, graph=False)


@scenario.variant
def graphed(lab, width, batch, layers, batches):
    """Each training step is one copy into the static batch, and one replay of the recorded launches."""
    return _training(lab, width, batch, layers, batches, graph=True)


@scenario.variant
def item_inside(lab):
    """A step that reads its loss with .item(): the capture fails, and the reason is shown."""
    # In a process of its own: a capture that failed leaves torch's current stream, random generator
    # and allocator as if it went on, and whatever is measured after it in that process would
    # suffer.
    command = [sys.executable, "-c", _ITEM_INSIDE, str(lab.device)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (done.stdout or done.stderr).strip().splitlines()
    lab.skip(
        f"the capture failed: {said[-1]}" if said else f"its process ended with {done.returncode}"
    )


def _training(lab, width, batch, layers, batches, graph):
    data = torch.randn(batches, batch, width, device=lab.device)
    blocks = [
        block for _ in range(layers) for block in (torch.nn.Linear(width, width), torch.nn.GELU())
    ]
    model = torch.nn.Sequential(*blocks, torch.nn.Linear(width, width)).to(lab.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=graph)
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
    run = _captured(lab, train, data[0], [*model.parameters(), *moments]) if graph else train

    def step():
        for index, rows in enumerate(data):
            with lab.useful():
                losses[index] = run(rows)

    weights = sum(weight.numel() for weight in model.parameters() if weight.dim() == 2)
    return Work(
        step,
        # nobody asks for the input's gradient
        flops=batches * batch * (6 * weights - 2 * width**2),
        dtype="fp32",
        items=batches * batch,
        inputs=data,
        state=(model, optimizer),
        output=(losses, *model.parameters()),
    )


def _captured(lab, train, rows, state):
    """A function that replays `train` on a batch; what was changed on the way there is put back."""
    static, saved, side = (
        rows.clone(),
        [tensor.detach().clone() for tensor in state],
        torch.cuda.Stream(),
    )
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


_ITEM_INSIDE = """
import os
import sys
import torch

torch.cuda.set_device(sys.argv[1])
rows = torch.ones(64, device="cuda")
rows.square().mean().item()  # works, outside of a capture
reason = "nothing: .item() was captured"
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        rows.square().mean().item()
except RuntimeError as error:
    while error.__context__:  # the end of the capture fails too, and says less
        error = error.__context__
    reason = str(error).splitlines()[0]
print(reason, flush=True)
os._exit(0)  # a capture that failed may not survive an orderly end
"""
