"""Quantized inference: narrow weights are read sooner, unless the step writes them out wide.

**In short:** a token reads every weight, so bytes are time, and 8 bits help only where 8 bits are read.

```text
              in memory                 bytes moved for each weight

fp32          ████ ──▶ product          4
bf16          ██ ──▶ product            2
int8_unfused  █ ──▶ ██ ──▶ ██ product   1 + 2 + 2: read, written, read
int8_fused    █ ──▶ product             1, widened in registers
fp8           █ ──▶ product             1, multiplied as it is
```

| variant | what changes | expected (H200) | CPU with AVX2 | why |
|---|---|---|---|---|
| `fp32` | all in 32 bits | baseline, 706 us | baseline | 4 bytes for each weight |
| `bf16` | weights and activations in 16 bits | 2.0x | skipped: no bf16 instructions | half the bytes |
| `int8_unfused` | int8 weights, widened before each product | 0.33x | slower | the wide copy is written and read: more bytes than `fp32` |
| `int8_fused` | `torch.compile` widens within the product | 2.7x | slower | a quarter of the bytes |
| `int8` | activations in int8 too | not on a GPU | slower | no instructions for it |
| `fp8` | weights and activations in 8 bits (e4m3) | 2.8x | not on a CPU | a quarter of the bytes, on tensor cores |

## What is compared

A feed-forward block as in Llama: a norm, three products, a gate and the residual. It takes one
token at a time, as text is generated. The weights are those of a model, the same for every seed.
They are quantized beforehand, activations in every step. A scale is the largest magnitude over the
largest number of the type, in int8 for each row of a weight, else for a tensor.

    least time = bytes moved for the weights / bandwidth

Near that time only fewer bytes help, or more tokens for the same bytes. Far above it, something else
than reading takes the time.

## The error beside the time

Each variant is compared with fp32: it is wrong by about 0.3 % in bf16, 0.4 % with int8 weights and
2 % in fp8. Allowed are 2, 5 and 10 %. What the block adds to its input is wrong by three times as
much: the input passes almost as it is. A scale follows the largest value, so outliers, which real
models have, cost digits. Whether a model bears it, only a test of the model can tell.

## Where nothing is gained

With many tokens a weight is read once for all, and arithmetic is the limit (`--sweep tokens`). Then
`int8_fused` loses: it multiplies without tensor cores. `bf16` and `fp8` use them.

On a CPU with AVX2 the compiled loop loads eight int8 numbers at a time and widens them. That takes
longer than reading four times the bytes. `int8` loses too: it needs instructions that multiply
bytes, which newer CPUs have (VNNI, AMX). Look at both there.

## What the sources say

The quick-start guide has 2x for FP8, which is the ratio of bytes, and of peaks, to bf16. A whole
block gains less: norm, gate and the quantization of activations are added. The profiling tutorial
names quantization without a figure.
"""

import torch
from torch.nn import functional

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="device memory",
    clock="device",
    params={"tokens": 1, "width": 8192, "hidden": 28672},
    cpu={"width": 1024, "hidden": 4096},
    smoke={"width": 64, "hidden": 128},
    sweep={"tokens": (1, 4, 16, 64)},
    item="token",
    claim="quick-start guide: FP8 2x; profiling tutorial: quantization, without a figure",
    no_effect_reason="with many tokens arithmetic is the limit, or what is saved in bytes is spent on widening",
    terms=("int8", "fp8", "weight-only", "llm", "decoding", "mlp", "gpt-fast"),
)
_SEED = 802_701  # of the weights: no seed of the data


@scenario.variant
def fp32(lab, tokens, width, hidden):
    """Weights and activations in 32 bits."""
    return _plain(lab, tokens, width, hidden, torch.float32, "fp32")


@scenario.variant
def bf16(lab, tokens, width, hidden):
    """Weights and activations in 16 bits: half of the bytes of fp32."""
    if lab.device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        lab.skip("this CPU has no instructions for bf16")
    return _plain(lab, tokens, width, hidden, torch.bfloat16, "bf16")


@scenario.variant
def int8_unfused(lab, tokens, width, hidden):
    """Weights in int8 with a scale for each row; each step writes them out wide for the library's
    product.
    """
    passes = 1 + 2 * _activations(lab).itemsize
    weights = _int8_weights(lab, width, hidden)
    data = _data(lab, tokens, width)
    return _work(lab, data, weights, _widened_product, "int8", passes, has_roof=False)


@scenario.variant(needs=("compiler",))
def int8_fused(lab, tokens, width, hidden):
    """The same weights, widened within a compiled product: memory is read in 8 bits."""
    product = torch.compile(_sums_of_products, dynamic=False)
    weights = _int8_weights(lab, width, hidden)
    data = _data(lab, tokens, width)
    return _work(lab, data, weights, product, "int8", passes=1, has_roof=False)


@scenario.variant
def int8(lab, tokens, width, hidden):
    """Weights and activations in int8, the latter quantized in every step; summed in 32 bits."""
    if lab.device.type == "cuda":
        lab.skip("on a GPU this lesson takes fp8 for eight bits")
    weights = _int8_weights(lab, width, hidden)
    return _work(lab, _data(lab, tokens, width), weights, _int8_product, "int8", passes=1)


@scenario.variant(needs=("cuda",))
def fp8(lab, tokens, width, hidden):
    """Weights and activations in 8 bits (e4m3) with one scale a tensor; sums and results are
    wider.
    """
    if torch.cuda.get_device_capability(lab.device) < (8, 9):
        lab.skip("fp8 needs compute capability 8.9 or more")
    weights = []
    for weight in _weights(lab, width, hidden):
        scale = weight.abs().amax() / torch.finfo(torch.float8_e4m3fn).max
        weights.append(((weight / scale).to(torch.float8_e4m3fn), scale))
    return _work(lab, _data(lab, tokens, width), weights, _fp8_product, "fp8", passes=1)


def _plain(lab, tokens, width, hidden, dtype, name):
    weights = [(weight.to(dtype),) for weight in _weights(lab, width, hidden)]
    data = torch.randn(tokens, width, device=lab.device).to(dtype)
    return _work(lab, data, weights, functional.linear, name, passes=dtype.itemsize)


def _activations(lab):
    return torch.bfloat16 if lab.device.type == "cuda" else torch.float32


def _weights(lab, width, hidden):
    """Of a model: gate, up and down, the same for every seed. What a block adds is a third of its
    input.
    """
    generator = torch.Generator(lab.device).manual_seed(_SEED)
    shapes = (hidden, width, 1.0), (hidden, width, 1.0), (width, hidden, 0.5)
    return [
        torch.randn(rows, columns, device=lab.device, generator=generator) * gain / columns**0.5
        for rows, columns, gain in shapes
    ]


def _int8_weights(lab, width, hidden):
    """Each with one scale for a row."""
    weights = []
    for weight in _weights(lab, width, hidden):
        scales = weight.abs().amax(dim=1) / 127
        narrow = torch.round(weight / scales[:, None]).to(torch.int8)
        weights.append((narrow, scales.to(_activations(lab))))
    return weights


def _data(lab, tokens, width):
    return torch.randn(tokens, width, device=lab.device).to(_activations(lab))


def _widened_product(data, weight, scales):
    return functional.linear(data, weight.to(data.dtype)) * scales


def _sums_of_products(data, weight, scales):
    return (weight.to(data.dtype) * data[:, None, :]).sum(dim=-1) * scales


def _int8_product(data, weight, scales):
    own = data.abs().amax() / 127
    narrow = torch.round(data / own).to(torch.int8)
    return torch._int_mm(narrow, weight.t()) * (scales * own)


def _fp8_product(data, weight, scale):
    own = data.abs().amax().float() / torch.finfo(torch.float8_e4m3fn).max
    narrow = (data / own).to(torch.float8_e4m3fn)
    return torch._scaled_mm(
        narrow, weight.t(), scale_a=own, scale_b=scale, out_dtype=torch.bfloat16
    )


def _block(data, gate, up, down, product):
    rows = functional.rms_norm(data, data.shape[-1:])
    hidden = functional.silu(product(rows, *gate)) * product(rows, *up)
    return data + product(hidden, *down)


def _work(lab, data, weights, product, dtype, passes, has_roof=True):
    """`passes` bytes are read or written for each weight."""
    count = sum(weight.numel() for weight, *_ in weights)

    @torch.no_grad()
    def step():
        return _block(data, *weights, product)

    return Work(
        step,
        items=len(data),
        # int8 that is widened has the error of int8 and the arithmetic of the activations, and
        # `dtype` says one of them: no roof of arithmetic for it
        flops=2 * len(data) * count if has_roof else None,
        bytes=passes * count + 2 * data.nbytes,
        dtype=dtype,
        inputs=data,
    )
