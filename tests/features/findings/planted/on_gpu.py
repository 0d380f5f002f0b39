"""Planted on a GPU: each variant is named after the finding that it deserves, and its twin, which
differs in one thing, deserves none.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario("planted", needs=("cuda", "cupy"), smoke={})
MiB = 2**20
cuda = CudaSource(r"""
template <int PAD>
__global__ void transposed(const float* in, float* out, int n) {
    __shared__ float tile[32][32 + PAD];
    const int x = blockIdx.x * 32 + threadIdx.x;
    const int y = blockIdx.y * 32;
    for (int row = threadIdx.y; row < 32; row += 8) tile[row][threadIdx.x] = in[(y + row) * n + x];
    __syncthreads();
    const int to_x = blockIdx.y * 32 + threadIdx.x;
    const int to_y = blockIdx.x * 32;
    for (int row = threadIdx.y; row < 32; row += 8)
        out[(to_y + row) * n + to_x] = tile[threadIdx.x][row];
}

__global__ void rounds(float* out, int steps) {
    extern __shared__ float memory[];
    float x = threadIdx.x;
    for (int step = 0; step < steps; ++step) x = x * 0.999f + 1.0f;
    memory[threadIdx.x] = x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = memory[threadIdx.x];
}
""")


@scenario.variant
def reference(lab):
    """A baseline, which nothing is compared with."""
    data = torch.randn(64 * MiB, device=lab.device)
    out = torch.empty_like(data)
    return Work(lambda: torch.mul(data, 2, out=out), bytes=2 * data.nbytes, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def waits_empty_queue(lab):
    """`.item()` after every few short kernels."""
    return _read(lab, 512, 40)


@scenario.variant(against=None, unchecked="computes something else")
def waits_empty_queue_twin(lab):
    """The same reads behind products of a millisecond each."""
    return _read(lab, 8192, 6, torch.bfloat16)


def _read(lab, size, count, dtype=torch.float32):
    data = torch.randn(size, size, device=lab.device, dtype=dtype)
    out = torch.empty_like(data)

    def step():
        total = 0.0
        for _ in range(count):
            torch.mm(data, data, out=out)
            total += out[0, 0].item()
        return out

    return Work(step, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def allocates_each_step(lab):
    """The cache of the allocator is emptied in every step."""
    return _fresh(lab, torch.cuda.empty_cache)


@scenario.variant(against=None, unchecked="computes something else")
def allocates_each_step_twin(lab):
    """Fresh tensors, which come from the cache."""
    return _fresh(lab, lambda: None)


def _fresh(lab, between):
    data = torch.randn(32 * MiB, device=lab.device)

    def step():
        result = data * 2 + 1
        between()
        return result

    return Work(step, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def many_small_operations(lab):
    """32 operations on 1 MiB."""
    return _chain(lab, 1 * MiB)


@scenario.variant(against=None, unchecked="computes something else")
def many_small_operations_twin(lab):
    """The same 32 operations on 256 MiB."""
    return _chain(lab, 256 * MiB)


def _chain(lab, size):
    data = torch.randn(size // 4, device=lab.device)
    out = torch.empty_like(data)

    def step():
        torch.mul(data, 1.01, out=out)
        for _ in range(31):
            out.mul_(0.99)
        return out

    return Work(step, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def optimizer_not_fused(lab):
    """Adam, parameter by parameter."""
    return _update(lab, foreach=False)


@scenario.variant(against=None, unchecked="computes something else")
def optimizer_not_fused_twin(lab):
    """Adam, fused."""
    return _update(lab, fused=True)


def _update(lab, **form):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(1024, 1024, device=lab.device) for _ in range(16)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6, **form)
    data = torch.randn(2048, 1024, device=lab.device)

    def step():
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Work(step, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def slow_product_kernel(lab):
    """bf16 matrices of 4,095."""
    return _product(lab, 4095)


@scenario.variant(against=None, unchecked="computes something else")
def slow_product_kernel_twin(lab):
    """bf16 matrices of 4,096."""
    return _product(lab, 4096)


def _product(lab, n):
    left = torch.randn(n, n, device=lab.device, dtype=torch.bfloat16)
    right = torch.randn(n, n, device=lab.device, dtype=torch.bfloat16)
    out = torch.empty_like(left)
    step = lambda: torch.mm(left, right, out=out)  # noqa: E731
    return Work(step, flops=2 * n**3, bytes=3 * left.nbytes, dtype="bf16", inputs=(left, right))


@scenario.variant(against=None, unchecked="computes something else")
def pageable_copies(lab):
    """64 MiB from pageable memory, and a product of a millisecond after it."""
    return _copied(lab, 64 * MiB)


@scenario.variant(against=None, unchecked="computes something else")
def pageable_copies_twin(lab):
    """1 MiB from pageable memory, and the same product."""
    return _copied(lab, 1 * MiB)


def _copied(lab, size):
    host = torch.randn(size // 4)
    device = torch.empty_like(host, device=lab.device)
    data = torch.randn(8192, 8192, device=lab.device, dtype=torch.bfloat16)
    out = torch.empty_like(data)

    def step():
        device.copy_(host, non_blocking=True)
        return torch.mm(data, data, out=out)

    return Work(step, inputs=(host, data))


@scenario.variant(against=None, unchecked="computes something else")
def bank_conflicts(lab):
    """A tile of 32 columns: a column of it is in one bank."""
    return _transposed(lab, 0)


@scenario.variant(against=None, unchecked="computes something else")
def bank_conflicts_twin(lab):
    """A tile of 33 columns."""
    return _transposed(lab, 1)


def _transposed(lab, pad):
    n = 8192
    data = torch.randn(n, n, device=lab.device)
    out = torch.empty_like(data)
    kernel = cuda.kernel(f"transposed<{pad}>", threads=(32, 8))

    def step():
        kernel((n // 32, n // 32), data, out, n)
        return out

    return Work(step, bytes=2 * data.nbytes, inputs=data)


@scenario.variant(against=None, unchecked="computes something else")
def tail_of_grid(lab):
    """One block more than there are SMs, and room for one on each."""
    return _rounds(lab, lab.sms + 1)


@scenario.variant(against=None, unchecked="computes something else")
def tail_of_grid_twin(lab):
    """Ten whole rounds of such blocks."""
    return _rounds(lab, 10 * lab.sms)


def _rounds(lab, blocks):
    out = torch.empty(blocks * 1024, device=lab.device)
    kernel = cuda.kernel("rounds", threads=1024, shared_bytes=160 * 1024)

    def step():
        kernel(blocks, out, 50_000)
        return out

    return Work(step, flops=2 * blocks * 1024 * 50_000)


@scenario.variant(against=None, unchecked="computes something else")
def compiles_in_steps(lab):
    """An `if` on a tensor in every layer of a compiled function."""
    return _layers(lab, _by_if)


@scenario.variant(against=None, unchecked="computes something else")
def compiles_in_steps_twin(lab):
    """The same by `torch.where`."""
    return _layers(lab, _by_where)


def _layers(lab, layer):
    def function(data):
        data = layer(data)
        data = layer(data)
        data = layer(data)
        return layer(data)

    data = torch.randn(64, 1024, device=lab.device)
    run = torch.compile(function)

    @torch.no_grad()
    def step():
        return run(data)

    return Work(step, inputs=data)


def _by_if(data):
    data = torch.relu(data * 1.5 + 0.1)
    if data.amax() > 1:
        data = data / 2
    return data


def _by_where(data):
    data = torch.relu(data * 1.5 + 0.1)
    return torch.where(data.amax() > 1, data / 2, data)
