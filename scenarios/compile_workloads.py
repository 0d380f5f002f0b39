"""torch.compile by workload: it saves launches and memory traffic, not library calls.

**In short:** the compiler fuses the small operations and leaves matmuls, convolutions and attention as they are, so their share limits the gain.

```text
pointwise         eager            tensors moved   compiled
                  x    ──▶ sigmoid ──▶ s    2      x, y ─▶ all ─▶ out
                  s, x ──▶ *       ──▶ m    3
                  m, y ──▶ +       ──▶ out  3
                               in all       8      3

transformer, cnn  ███▒▒███▒▒▒████▒▒███▒▒▒          ███▒███▒████▒███▒
matmul            ███████████████                  ███████████████
                  █ call of a library   ▒ small operations
```

| variant | what changes | expected | why |
|---|---|---|---|
| `eager` | every operation is a call of its own | baseline; transformer 6.48 ms (H200) | each call costs a launch, each result goes through memory |
| `compiled` | the same through `torch.compile`, with its defaults | transformer 1.12x (H200); pointwise at most 2.7x; matmul *same* | small operations fused; the library's calls remain |

## What is compiled

torch.compile traces Python code into a graph, and fuses neighbouring element-wise operations and
reductions into single kernels. What is fused is not written to memory in between. One compiled call
replaces many trips through Python and PyTorch's dispatcher (which selects the kernel). Matmuls
(matrix products), convolutions and attention remain calls of the same libraries by default.

`--set workload=cnn` chooses a workload; `--sweep workload` runs all four:

- `transformer`: forward and backward pass of four layers;
- `cnn`: inference of eight residual blocks of convolution, batch norm and ReLU;
- `pointwise`: the gated sum sigmoid(x) * x + y;
- `matmul`: one matrix product.

## What bounds the gain

Where memory is the limit, `pointwise` gains at most its traffic:

    8 tensors / 3 tensors = 2.7x

In a transformer and a CNN the share of the library calls bounds it. A profile of the eager step
shows it in advance. A smaller batch gains more, as launches weigh more. fp32 gains less, as matmuls
take longer. Here a GPU computes in bf16, a CPU in fp32; a CPU saves calls and memory traffic in the
same way.

## Where it does not help

`matmul` has nothing to fuse: *same* is the right answer. A small one can become slower, because
every call checks guards: that shapes and types are those that the code was compiled for.

Compiling takes seconds to minutes, in the first call and again for other shapes. It is no part of
the step time.

## What the source says

The torch.compile tutorial has one range for each workload, such as 1.3-1.5x for a transformer. It
holds for its size, precision and device.
"""

import torch
from torch.nn import functional

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="compute",
    params={
        "workload": "transformer",
        "dtype": "bf16",
        "batch": 8,
        "length": 1024,
        "width": 1024,
        "images": 64,
        "channels": 128,
        "mib": 256,
        "n": 8192,
    },
    cpu={
        "dtype": "fp32",
        "batch": 2,
        "length": 64,
        "width": 64,
        "images": 1,
        "channels": 16,
        "mib": 16,
        "n": 1024,
    },
    smoke={"batch": 1, "length": 8, "width": 64, "images": 1, "channels": 4, "mib": 1, "n": 64},
    sweep={"workload": ("transformer", "cnn", "pointwise", "matmul")},
    claim=(
        "torch.compile tutorial: transformer 1.3-1.5x, CNN inference 1.2-1.4x, pointwise 2-3x, "
        "matmul ~1x"
    ),
    no_effect_reason="library calls take nearly all of its time, and compiled code makes the same calls",
    terms=("inductor", "fusion", "transformer", "cnn", "pointwise"),
)
_LAYERS, _HEAD_WIDTH, _BLOCKS, _PIXELS = 4, 64, 8, 56
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@scenario.variant
def eager(lab, workload, dtype, batch, length, width, images, channels, mib, n):
    """Every operation is a call of its own."""
    return _work(lab, False, workload, dtype, batch, length, width, images, channels, mib, n)


@scenario.variant(needs=("compiler",))
def compiled(lab, workload, dtype, batch, length, width, images, channels, mib, n):
    """The same model or function through torch.compile, with its default options."""
    return _work(lab, True, workload, dtype, batch, length, width, images, channels, mib, n)


def _work(lab, is_compiled, workload, dtype, batch, length, width, images, channels, mib, n):
    def prepare(function):
        return torch.compile(function) if is_compiled else function

    to = {"device": lab.device, "dtype": _DTYPES[dtype]}
    if workload == "transformer":
        step, declared = _transformer(to, prepare, batch, length, width)
    elif workload == "cnn":
        step, declared = _cnn(to, prepare, images, channels)
    elif workload == "pointwise":
        step, declared = _pointwise(to, prepare, mib, moved=3 if is_compiled else 8)
    else:
        step, declared = _matmul(to, prepare, n)

    def useful_step():
        with lab.useful():
            return step()

    return Work(useful_step, dtype=dtype, **declared)


def _transformer(to, prepare, batch, length, width):
    model = torch.nn.Sequential(*(_TransformerLayer(width) for _ in range(_LAYERS))).to(**to)
    rows, parameters, forward = (
        torch.randn(batch, length, width, **to),
        list(model.parameters()),
        prepare(model),
    )
    tokens = batch * length
    # the input needs no gradient
    matmuls = 6 * tokens * 12 * width**2 * _LAYERS - 2 * tokens * 3 * width**2
    # causal: half of the scores; torch's count has all
    attention = 6 * tokens * length * width * _LAYERS
    declared = {"flops": matmuls + attention, "items": tokens, "inputs": (rows, parameters)}
    return lambda: torch.autograd.grad(forward(rows).float().square().mean(), parameters), declared


def _cnn(to, prepare, images, channels):
    model = (
        torch.nn.Sequential(*(_ResidualBlock(channels) for _ in range(_BLOCKS)))
        .eval()
        .requires_grad_(False)
    )
    model = model.to(**to, memory_format=torch.channels_last)
    batch = torch.randn(images, channels, _PIXELS, _PIXELS, **to).to(
        memory_format=torch.channels_last
    )
    forward = prepare(model)
    flops = 2 * _BLOCKS * 2 * images * (channels * 3 * _PIXELS) ** 2
    return lambda: forward(batch), {
        "flops": flops,
        "items": images,
        "inputs": (batch, list(model.parameters())),
    }


def _pointwise(to, prepare, mib, moved):
    data, other = (torch.randn(mib * MiB // to["dtype"].itemsize, **to) for _ in range(2))
    gate = prepare(lambda x, y: torch.sigmoid(x) * x + y)
    declared = {"bytes": moved * data.nbytes, "items": data.numel(), "inputs": (data, other)}
    return lambda: gate(data, other), declared


def _matmul(to, prepare, n):
    a, b = (torch.randn(n, n, **to) for _ in range(2))
    product = prepare(torch.mm)
    declared = {"flops": 2 * n**3, "bytes": 3 * a.nbytes, "items": n**3, "inputs": (a, b)}
    return lambda: product(a, b), declared


class _TransformerLayer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = width // _HEAD_WIDTH
        # Without parameters: the CPU's eager LayerNorm adds up their gradients in bf16, tens of
        # percent off.
        self.norm = torch.nn.LayerNorm(width, elementwise_affine=False)
        self.qkv, self.out = _linear(width, 3 * width), _linear(width, width)
        self.up, self.down = _linear(width, 4 * width), _linear(4 * width, width)

    def forward(self, rows):
        q, k, v = (
            self.qkv(self.norm(rows))
            .unflatten(-1, (3, self.heads, _HEAD_WIDTH))
            .permute(2, 0, 3, 1, 4)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        rows = rows + self.out(mixed.transpose(1, 2).flatten(-2))
        return rows + self.down(functional.gelu(self.up(self.norm(rows))))


def _linear(inputs, outputs):
    return torch.nn.Linear(inputs, outputs, bias=False)


class _ResidualBlock(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv_1, self.conv_2 = (
            torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2)
        )
        self.norm_1, self.norm_2 = torch.nn.BatchNorm2d(channels), torch.nn.BatchNorm2d(channels)

    def forward(self, images):
        between = functional.relu(self.norm_1(self.conv_1(images)))
        return functional.relu(self.norm_2(self.conv_2(between)) + images)
