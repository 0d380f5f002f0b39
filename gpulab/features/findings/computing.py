"""Rules about time in which something is computed: bytes that are moved twice, memory accesses,
occupancy, spills, tensor cores, the last wave of a grid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

from gpulab.core.findings import Value
from gpulab.core.payloads import MATRIX, MEMORY, KernelCode, communicates
from gpulab.core.statuses import Status
from gpulab.features.findings import findings
from gpulab.features.findings.rule import (
    Fix,
    Match,
    NotMeasured,
    Rule,
    RuleResult,
    Threshold,
    by_telemetry,
    measured,
    profiled,
    static,
)
from gpulab.features.findings.step import Step

if TYPE_CHECKING:
    from gpulab.features.goodput.events import KernelLaunch, Operation

_PROFILE = "--profile all"
_MOVED_AGAIN = Threshold(1.5, "gpulab: bytes of operands over those of the chain")
_POINTWISE = Threshold(0.5, "gpulab: most of the step")
_PASS = Threshold(0.02, "gpulab: what takes less is no pass over the data")
_NEAR_MEMORY = Threshold(0.5, "gpulab: they move bytes, whatever else they do")
_SECTORS = Threshold(0.5, "fournex: over 4 sectors of 32 bytes for a request of 128")
_WAYS = Threshold(2, "Nsight Compute: any conflict; shown from 10 % of the wavefronts")
_WAVEFRONTS = Threshold(0.1, "Nsight Compute: 10 % of the wavefronts")
_OCCUPANCY = Threshold(0.25, "gpulab: few warps; Nsight Compute 80 %, fournex 40 %")
_LOCAL = Threshold(0.2, "gpulab: local loads of all loads; fewer may pay")
_PRODUCTS = Threshold(0.5, "gpulab: most of the step")
_TENSOR = Threshold(0.05, "fournex: tensor cores idle")
_BUSY_UNITS = Threshold(
    0.3, "gpulab: a product that is too small for the units is no faster on others"
)
_TF32_ERROR = 2**-11
"""Relative, of a product of fp32 numbers rounded to ten bits."""
_TAIL = Threshold(0.2, "Nsight Compute: 20 % of a wave")
_FITTING = 0.6
_LEAST_SHARE = 0.3
"""Of the step: a kernel that matters."""


_POINTWISE_ROW = re.compile(
    r"aten::(add|sub|rsub|mul|div|addc\w+|relu|gelu|silu|sigmoid|tanh|exp|log|sqrt|rsqrt|pow|neg|"
    r"abs|clamp\w*|where|threshold|leaky_relu|hardtanh|native_dropout|native_layer_norm|_softmax|"
    r"_log_softmax|mean|sum|var\w*|reciprocal|square|lerp|erf|maximum|minimum)_?$"
    r"|elementwise|layer_norm|softmax_warp|cunn_SoftMax|reduce_kernel"
)
_SEVERAL = 2
_FOLDED = re.compile(r"^triton_|CompiledFxGraph|cpp_fused|Optimizer|multi_tensor_apply")


def _moves_again(step: Step) -> RuleResult:
    operands = step.variant.operand_bytes
    rows = [row for row in step.operations if row.on_device or not step.on_gpu]
    if not rows:
        return NotMeasured("the operations of the step", _PROFILE)
    if any(_FOLDED.search(row.name) for row in rows):
        return None
    if step.share_of_rows(step.products) >= _PASS.value:
        return None  # between products, as in attention, there is no one chain to fuse
    pointwise = _pointwise(step)
    share = pointwise_share(step)
    calls = sum(row.calls for row in pointwise)
    if operands is None or calls < _SEVERAL or share < _POINTWISE.value:
        return None
    near = _near_memory(step, operands / min(share, 1.0))
    if near is None:
        return NotMeasured("the bandwidth of memory here", "--time 10 (not --quick)")
    if not near:
        return None
    chain = operands / calls
    ratio = operands / min(operands, max(chain, _least_bytes(step) or 0.0))
    if ratio < _MOVED_AGAIN.value:
        return None
    share = min(share, 1.0)
    evidence = (
        profiled("pointwise operations", share),
        measured("bytes of operands", operands, "bytes"),
        profiled("pointwise operations of a step", calls, "calls"),
    )
    values: dict[str, Value] = {"operations": calls, "ratio": ratio, "share": share}
    return Match(values, share, evidence)


def pointwise_share(step: Step) -> float:
    return step.share_of_rows(_pointwise(step))


def _pointwise(step: Step) -> list[Operation]:
    rows = [row for row in step.operations if row.on_device or not step.on_gpu]
    return [row for row in rows if _POINTWISE_ROW.search(row.name) and row.share >= _PASS.value]


def _least_bytes(step: Step) -> float | None:
    """Return what the least of the variants that are compared declares: each computes the same. Of
    several ranks it is what they send.
    """
    sizes = [
        each.bytes for each in step.report.variants if each.bytes and not getattr(each, "ranks", ())
    ]
    return min(sizes) if sizes and step.report.compares else None


def _near_memory(step: Step, amount: float) -> bool | None:
    """Return whether bytes in a step's time are a good part of what memory moves; None where that
    is not known.
    """
    if step.bound in ("memory", "cache"):
        return True
    rates: list[float] = [
        each.median
        for each in (step.report.ceilings.ceilings if step.report.ceilings else ())
        if each.roof == MEMORY
    ]
    if not rates or not step.step_s:
        return None
    return amount / step.step_s >= _NEAR_MEMORY.value * min(rates)


def _share_of_kernel(step: Step, kernel: KernelCode) -> float:
    """Return a kernel's share of the step, by the recording; all of it where it is the only one."""
    name = kernel.name.partition("<")[0]
    rows = [row for row in step.kernels if re.search(rf"\b{re.escape(name)}\b", row.name)]
    if rows:
        return min(1.0, step.share_of_rows(rows))
    return 1.0 / max(1, len(step.compiled_kernels))


def _own_kernels(step: Step) -> Iterator[tuple[KernelCode, float]]:
    """Kernels of its own that take a good part of the step."""
    for kernel in step.compiled_kernels:
        share = _share_of_kernel(step, kernel)
        if share >= _LEAST_SHARE:
            yield kernel, share


def _wastes_sectors(step: Step) -> RuleResult:
    if step.at_roof:
        return None
    worst: Match | None = None
    for kernel, share in _own_kernels(step):
        uses = {"load": kernel.load_use, "store": kernel.store_use}
        known = {name: use for name, use in uses.items() if use is not None}
        if not known:
            continue
        access = min(known, key=lambda name: known[name])
        use = known[access]
        if use > _SECTORS.value or _uses_the_rest(kernel, access, use):
            continue
        values: dict[str, Value] = {
            "kernel": kernel.name,
            "of_step": share,
            "use": use,
            "access": access,
        }
        evidence = (static("of sectors that are used", use), profiled("kernel", share))
        if worst is None or share > worst.share:
            worst = Match(values, share, evidence)
    return worst


def _uses_the_rest(kernel: KernelCode, access: str, use: float) -> bool:
    """Return whether a thread's accesses in a row suffice to use all of a sector itself."""
    return _count(kernel, access) * use >= 1


def _conflicts(step: Step) -> RuleResult:
    if step.at_roof:
        return None
    for kernel, share in _own_kernels(step):
        ways = kernel.bank_conflicts
        shared = _count(kernel, "shared_")
        memory = shared + _count(kernel, "load") + _count(kernel, "store")
        if ways is None or ways < _WAYS.value or not memory:
            continue
        # passes of shared memory among all accesses, were each access one pass
        wavefronts = shared * ways / (shared * ways + memory - shared)
        lost = wavefronts * (1 - 1 / ways)
        if lost < _WAVEFRONTS.value:
            continue
        values: dict[str, Value] = {
            "kernel": kernel.name,
            "of_step": share,
            "ways": ways,
            "share": wavefronts,
        }
        evidence = (
            static("passes of the worst access", ways, "passes"),
            static("of wavefronts", wavefronts),
            profiled("kernel", share),
        )
        return Match(values, share, evidence)
    return None


def _count(kernel: KernelCode, prefix: str) -> int:
    """Instructions of classes that begin so."""
    return sum(count for name, count in kernel.instructions.items() if name.startswith(prefix))


def _few_warps(step: Step) -> RuleResult:
    if step.bound != "latency" or step.at_roof:
        return None
    if (step.fraction or 0.0) >= _FITTING:
        return None
    seen = step.counters.get("occupancy")
    for kernel, share in _own_kernels(step):
        occupancy = kernel.occupancy
        if occupancy is None or occupancy > _OCCUPANCY.value or kernel.limiter is None:
            continue
        evidence = [static("occupancy that fits", occupancy), profiled("kernel", share)]
        if seen is not None:
            evidence.append(by_telemetry("occupancy", seen))
        values: dict[str, Value] = {
            "kernel": kernel.name,
            "of_step": share,
            "occupancy": occupancy,
            "limiter": kernel.limiter,
        }
        return Match(values, share, tuple(evidence))
    return None


def _spills(step: Step) -> RuleResult:
    if step.at_roof:
        return None
    for kernel, share in _own_kernels(step):
        local = _count(kernel, "local_load")
        loads = local + _count(kernel, "load") + _count(kernel, "async_copy")
        if not kernel.spill_bytes or not loads or local < _LOCAL.value * loads:
            continue
        of_loads = local / loads
        values: dict[str, Value] = {
            "kernel": kernel.name,
            "of_step": share,
            "spill_bytes": kernel.spill_bytes,
            "share": of_loads,
        }
        evidence = (
            static("spilled", kernel.spill_bytes, "bytes a thread"),
            static("of loads that are spill reloads", of_loads),
            profiled("kernel", share),
        )
        return Match(values, share, evidence)
    return None


_FP32_KERNEL = re.compile(r"sgemm|ffma|simt")


def _fp32_products(step: Step) -> RuleResult:
    if not step.on_gpu:
        return None
    if not step.operations:
        return NotMeasured("the operations of the step", _PROFILE)
    share = fp32_share(step)
    if share < _PRODUCTS.value:
        return None
    tensor = step.counters.get("tensor")
    if tensor is not None and tensor >= _TENSOR.value:
        return None
    if not _tolerates_tf32(step):
        return None
    rate = _product_rate(step, share)
    limit = step.ceiling(MATRIX, "fp32")
    if rate is not None and limit is not None and rate < _BUSY_UNITS.value * limit.median:
        return None
    fast, slow = step.ceiling(MATRIX, "tf32"), step.ceiling(MATRIX, "fp32")
    evidence = [profiled("products in fp32", share)]
    if tensor is not None:
        evidence.append(by_telemetry("tensor cores", tensor))
    if fast and slow:
        evidence.append(measured("roof in TF32", fast.median, fast.unit))
        evidence.append(measured("roof in fp32", slow.median, slow.unit))
    return Match({"share": share}, share, tuple(evidence))


def fp32_share(step: Step) -> float:
    rows = (row for row in step.products if _FP32_KERNEL.search(row.name))
    return min(1.0, step.share_of_rows(rows))


def _product_rate(step: Step, share: float) -> float | None:
    """FLOP/s of the products; None where nothing says how many there are."""
    flops = step.variant.flops_counted or step.variant.flops
    return flops / (share * step.step_s) if flops and step.step_s else None


def _tolerates_tf32(step: Step) -> bool:
    """Return whether the check of this step, or of its counterpart, would let TF32 pass."""
    if any(each.status == Status.WRONG and _is_tf32(each.dtype) for each in step.report.variants):
        return False
    allowed = [each.tolerance for each in step.report.variants if each.tolerance is not None]
    return not allowed or max(allowed) >= _TF32_ERROR / 2


def _is_tf32(dtype: str | None) -> bool:
    return dtype in ("tf32", "fp16", "bf16")


_SMALL_ALIGNMENT = re.compile(r"align[124](?![0-9])")
_TENSOR_KERNEL = re.compile(r"tensorop|xmma|s\d+gemm|h\d+gemm|bf16|f16|tf32")
_OLDER_KERNEL = re.compile(r"ampere_|turing_|volta_|sm7\d_|sm80_|cutlass_7\d|cutlass_80")


def _slow_products(step: Step) -> RuleResult:
    if not step.on_gpu:
        return None
    if not step.operations:
        return NotMeasured("the operations of the step", _PROFILE)
    hopper = step.report.device is not None and (step.report.device.capability or "") >= "9.0"
    by_reason: dict[str, tuple[float, Operation]] = {}
    for row in step.products:
        if _FP32_KERNEL.search(row.name) or not _TENSOR_KERNEL.search(row.name):
            continue
        why = ""
        if _SMALL_ALIGNMENT.search(row.name):
            why = "alignment"
        elif hopper and _OLDER_KERNEL.search(row.name):
            why = "older"
        if why:
            share, first = by_reason.get(why, (0.0, row))
            by_reason[why] = share + row.share, first
    if not by_reason:
        return None
    why, (share, row) = max(by_reason.items(), key=lambda entry: entry[1][0])
    if share < _LEAST_SHARE:
        return None
    share = min(1.0, share)
    values: dict[str, Value] = {"share": share, "kernel": row.name, "why": why}
    evidence = (profiled("the kernel", share),)
    return Match(values, share, evidence)


_MORE_BLOCKS = Fix(
    "split its work over more blocks: some SMs have none",
    (
        "int blocks = sms * blocks_per_sm;  // at least one for each SM",
        "for (int i = first; i < n; i += blocks * threads)",
        "    partial += x[i];   // then add the partial results",
    ),
    "reduction",
)
_WARPS = 64
_REGISTERS = 65536
_BLOCKS = 32
_WARP = 32


def _grid_ends(step: Step) -> RuleResult:
    device = step.report.device
    if not step.on_gpu or device is None or not device.sms:
        return None
    facts = step.facts
    if facts is None:
        return NotMeasured("the grids of its kernels", _PROFILE)
    if step.at_roof:
        return None
    for launch in facts.launches:
        if not step.step_s or launch.seconds < _LEAST_SHARE * step.step_s:
            continue
        if communicates(launch.name):
            continue  # its blocks wait for a link, and a few are enough
        share = min(1.0, launch.seconds / step.step_s)
        at_once = device.sms * _resident(launch, step)
        waves = launch.blocks / at_once
        idle = _idle_at_the_end(launch.blocks, at_once, device.sms)
        if idle < _TAIL.value:
            continue
        values: dict[str, Value] = {
            "kernel": launch.name,
            "of_step": share,
            "blocks": launch.blocks,
            "waves": waves,
            "tail": idle * max(1, ceil(waves)),
        }
        evidence = (
            profiled("blocks of the grid", launch.blocks, "blocks"),
            static("blocks at once", at_once, "blocks"),
            profiled("kernel", share),
        )
        return Match(values, share, evidence, fix=None if waves >= 1 else _MORE_BLOCKS)
    return None


def _idle_at_the_end(blocks: int, at_once: int, sms: int) -> float:
    """The share of a kernel's time that the part of the device takes which its last wave leaves
    idle; of less than one round, the share of the SMs that have no block.
    """
    whole, rest = divmod(blocks, at_once)
    if not whole:
        return max(0.0, 1 - blocks / sms)
    return (1 - rest / at_once) / (whole + 1) if rest else 0.0


def _resident(launch: KernelLaunch, step: Step) -> int:
    """Blocks that an SM has at once: by warps and registers, and by what the compiler said."""
    warps = -(-launch.threads // _WARP)
    kernels = step.compiled_kernels
    for kernel in kernels:
        name = kernel.name.partition("<")[0]
        if kernel.occupancy and re.search(rf"\b{re.escape(name)}\b", launch.name):
            return max(1, round(kernel.occupancy * _WARPS / warps))
    fits = [_BLOCKS, _WARPS // warps]
    if launch.registers:
        fits.append(_REGISTERS // (launch.registers * warps * _WARP))
    if launch.shared_bytes:
        fits.append(_SHARED // launch.shared_bytes)
    return max(1, min(fits))


_SHARED = 228 * 1024

RULES = (
    Rule(
        findings.not_fused,
        _moves_again,
        "fuse them: one kernel reads the operands once, and writes the result once",
        (
            "@torch.compile",
            "def block(x):",
            "    return torch.nn.functional.gelu(norm(x))",
        ),
        "layernorm_gelu",
        {"ratio": _MOVED_AGAIN, "share": _POINTWISE, "a pass": _PASS, "of memory": _NEAR_MEMORY},
    ),
    Rule(
        findings.sectors_wasted,
        _wastes_sectors,
        "let neighbouring threads access neighbouring addresses",
        (
            "int i = blockIdx.x * blockDim.x + threadIdx.x;",
            "y[i] = a * x[i];   // coalesced",
            "// not x[i * stride]: transpose the data once",
        ),
        "coalescing",
        {"use": _SECTORS},
    ),
    Rule(
        findings.bank_conflicts,
        _conflicts,
        "pad the tile by one element a row",
        (
            "__shared__ float tile[32][32 + 1];",
            "tile[threadIdx.y][threadIdx.x] = in[...];",
            "out[...] = tile[threadIdx.x][threadIdx.y];",
        ),
        "shared_memory_tiling",
        {"ways": _WAYS, "wavefronts": _WAVEFRONTS},
    ),
    Rule(
        findings.low_occupancy,
        _few_warps,
        "need less of what limits it, or have each thread load more at once",
        (
            "float4 v = reinterpret_cast<const float4*>(x)[i];",
            "#pragma unroll 8        // independent loads",
            "__launch_bounds__(256, 4)  // registers",
        ),
        "occupancy",
        {"occupancy": _OCCUPANCY},
    ),
    Rule(
        findings.registers_spill,
        _spills,
        "allow more registers: fewer blocks on an SM, or less in each thread",
        (
            "__launch_bounds__(256, 4)  // not (256, 8)",
            "// or process fewer elements in each thread",
            "// or recompute what is kept",
        ),
        "launch_bounds",
        {"local": _LOCAL},
    ),
    Rule(
        findings.fp32_products,
        _fp32_products,
        "use tensor cores: TF32, or bf16 by autocast, where the result allows",
        (
            "torch.set_float32_matmul_precision('high')  # TF32",
            "with torch.autocast('cuda', torch.bfloat16):",
            "    loss = model(x)",
        ),
        "precision",
        {"products": _PRODUCTS, "tensor": _TENSOR, "of the fp32 roof": _BUSY_UNITS},
    ),
    Rule(
        findings.slow_product_kernel,
        _slow_products,
        "pad sizes to multiples of 8 (bf16: 64 and more is better), and keep operands contiguous",
        (
            "vocabulary = -(-vocabulary // 64) * 64",
            "weight = torch.nn.functional.pad(weight, (0, 64 - n % 64))",
            "x = x.contiguous()",
        ),
        "persistent_matmul",
        {"share": Threshold(_LEAST_SHARE, "gpulab: a kernel that matters")},
    ),
    Rule(
        findings.tail_of_grid,
        _grid_ends,
        "fit the grid to the device: smaller blocks, or a persistent grid of whole rounds",
        (
            "int blocks = sms * blocks_per_sm;  // persistent",
            "for (int t = blockIdx.x; t < tiles; t += gridDim.x)",
            "    compute(t);",
        ),
        "persistent_matmul",
        {"tail": _TAIL},
    ),
)
