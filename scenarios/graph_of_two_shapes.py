"""A graph of two shapes: pad to the captured shape, or capture a graph for each.

**In short:** a CUDA graph replays one shape, so another shape needs padding or a graph of its own.

```text
               large batch    small batch    small batch
eager          ▸██▸██▸██▸██   ▸█·▸█·▸█·▸█·   ▸█·▸█·▸█·▸█·
padded         ▸████████      ▸████▒▒▒▒      ▸████▒▒▒▒
graph_each     ▸████████      ▸████          ▸████
captured_once  ▸████████      refused

               ▸: launch   █: kernels   ▒: kernels of padding   ·: idle
               not to scale
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `eager` | every kernel is launched from Python | baseline, 2.0 to 2.2 ms | any shape works; the device waits for launches |
| `padded` | one graph of the large shape for all batches | 2.8x to 3.1x; *slower* with far larger `rows` | one launch a batch, but 3.4 times the rows |
| `graph_each` | a graph for each of the two shapes | 3.0x to 3.4x; 1.08x over `padded` | one launch a batch, and no padding |
| `captured_once` | the graph of the large shape is called with a small batch | refused | its sizes are part of the graph |

## What goes wrong

A graph replays the same kernels, with the same sizes, on the same addresses. So each batch is
copied into a buffer that never moves. Here `captured_once` compares the shapes before that copy.
Without that:

- `static.copy_(batch)` refuses another shape. But it repeats a batch of *one* row into all rows,
  without an error.
- Without the copy, the graph computes the batch before once more, without an error.

## What padding costs

Of four batches one has 1,024 rows and three have 64:

    4 * 1024 / (1024 + 3 * 64) = 3.4 times the rows

While launches take longer than kernels this costs little: see `--sweep rows`. The rows behind the
batch are those of an earlier one. That is harmless where each row is computed by itself. Batch norm
or a mean over all rows needs a mask.

## What graphs cost

Each graph is captured after a warm-up, and keeps memory of its own. With many shapes, pad to a few
sizes (buckets), with a graph for each; `dynamic_shapes` does so for a compiler. The mode
`reduce-overhead` of `torch.compile` records a graph for each shape by itself.

## What the sources say

The performance basics and the quick-start guide ask for static shapes. What must not change is the
shape of one graph: a program may have several.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    needs=("cuda",),
    roof="launch",
    params={"rows": 1024, "fewer": 64, "width": 256, "layers": 8, "batches": 8},
    smoke={"rows": 16, "fewer": 4, "width": 32, "layers": 2, "batches": 4},
    sweep={"rows": (64, 256, 1024, 4096, 16384)},
    ladder=True,
    item="row",
    no_effect_reason="its kernels outlast their launches, which were hidden behind them before",
    claim="performance basics and quick-start guide: a graph needs static shapes; no factor",
    terms=("dynamic shapes", "padding", "buckets", "cuda graph capture"),
)


@scenario.variant
def eager(lab, rows, fewer, width, layers, batches):
    """Every kernel of every batch is launched from Python, whatever its shape."""
    data, model = _made(lab, rows, fewer, width, layers, batches)
    return _inference(lab, data, model, model, sum(map(len, data)))


@scenario.variant
def padded(lab, rows, fewer, width, layers, batches):
    """One graph of the large shape: a small batch fills its first rows, where `eager` computes only
    these.
    """
    data, model = _made(lab, rows, fewer, width, layers, batches)
    replay = _captured(lab, model, rows, width, pads=True)
    return _inference(lab, data, model, replay, rows * len(data))


@scenario.variant
def graph_each(lab, rows, fewer, width, layers, batches):
    """A graph for each shape, chosen by the rows of the batch, where `padded` has one for both."""
    data, model = _made(lab, rows, fewer, width, layers, batches)
    graphs = {count: _captured(lab, model, count, width) for count in (rows, fewer)}

    def run(batch):
        return graphs[len(batch)](batch)

    return _inference(lab, data, model, run, sum(map(len, data)))


@scenario.variant
def captured_once(lab, rows, fewer, width, layers, batches):
    """The graph of the large shape is called with a small batch as it is: the shapes are compared,
    and the reason is shown.
    """
    data, model = _made(lab, rows, fewer, width, layers, batches)
    replay = _captured(lab, model, rows, width)
    try:
        replay(data[1])
    except ValueError as error:
        lab.skip(f"refused: {error}")


def _made(lab, rows, fewer, width, layers, batches):
    """(batches, of which every fourth is large; a model)."""
    sizes = [fewer if place % 4 else rows for place in range(batches)]
    data = [torch.randn(size, width, device=lab.device) for size in sizes]
    blocks = [
        block for _ in range(layers) for block in (torch.nn.Linear(width, width), torch.nn.GELU())
    ]
    return data, torch.nn.Sequential(*blocks).to(lab.device).requires_grad_(False)


def _captured(lab, model, rows, width, pads=False):
    """A function that replays the model on a batch of so many rows; `pads`: or of fewer."""
    static = torch.zeros(rows, width, device=lab.device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = model(static)

    def replay(batch):
        if len(batch) != rows and not pads:
            raise ValueError(f"captured for {rows} rows, called with {len(batch)}")
        with lab.phase("copy"):
            static[: len(batch)].copy_(batch)
        graph.replay()
        return result[: len(batch)].clone()  # the next replay writes there again

    return replay


def _inference(lab, data, model, run, computed):
    """`computed`: rows in a step, those of padding among them."""

    def step():
        results = []
        for batch in data:
            with lab.useful():
                results.append(run(batch))
        return results

    lab.report("rows computed", computed)
    weights = list(model.parameters())
    return Work(
        step,
        flops=2 * computed * sum(weight.numel() for weight in weights if weight.dim() == 2),
        dtype="fp32",
        items=sum(map(len, data)),
        inputs=(data, weights),
    )
