"""The shim gives what a GPU gives: kernels whose results are known."""

import math
from functools import partial

import pytest
import torch
from shim import AVAILABLE, KernelError, rewritten

from gpulab.features.kernels.source import CudaSource

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no g++, or no Linux")
CUDA = CudaSource(r"""
template <typename T> __global__ void __launch_bounds__(256, 4)
    saxpy(const T* __restrict__ x, T* __restrict__ y, T a, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
template <int T, bool FIRST, bool SECOND> __global__ void tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float left[T][T + 1], right[T][T];  // one more: no bank conflicts; no barrier is told by __shared__;
    const int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += T) {
        left[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0;
        right[threadIdx.y][threadIdx.x] = column < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0;
        if (FIRST) __syncthreads();
#pragma unroll
        for (int i = 0; i < T; i++) sum = fmaf(left[threadIdx.y][i], right[i][threadIdx.x], sum);
        if (SECOND) __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}
__global__ void tree(const float* x, float* out, int n) {
    extern __shared__ __align__(16) float sums[];
    sums[threadIdx.x] = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sums[threadIdx.x] += x[i];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, sums[0]);
}
__global__ void warps(const float* x, float* down, float* all, unsigned* odd) {
    float sum = x[threadIdx.x], whole = sum;
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync(0xffffffff, sum, lanes);
    for (int lanes = 16; lanes > 0; lanes /= 2) whole += __shfl_xor_sync(0xffffffff, whole, lanes);
    down[threadIdx.x] = sum, all[threadIdx.x] = whole;
    odd[threadIdx.x] = __ballot_sync(0xffffffff, threadIdx.x & 1);
}
__global__ void lanes(int* out) {
    const int lane = threadIdx.x;
    out[lane] = __shfl_up_sync(0xffffffff, lane, 3, 8);
    out[32 + lane] = __shfl_down_sync(0xffffffff, lane, 3, 8);
    out[64 + lane] = __shfl_sync(0xffffffff, lane, 9, 8);
    out[96 + lane] = __shfl_xor_sync(0xffffffff, lane, 9, 8);
    if (lane < 16) out[128 + lane] = __shfl_sync(0x0000ffff, lane * 2, 15 - lane);
    else out[128 + lane] = __any_sync(0xffff0000, lane == 20) + 2 * __all_sync(0xffff0000, lane != 20);
    __syncwarp();
    out[160 + lane] = __reduce_max_sync(0xffffffff, lane == 7 ? -3 : -5);
    out[160 + lane] += __popc(__match_any_sync(0xffffffff, lane % 4));
    out[192 + lane] = __shfl_sync(0x0000ffffu << lane / 16 * 16, lane, 31 - lane);  // of a lane beyond its mask
}
__global__ void kept(float* x) {
    __shared__ float one;
    if (blockIdx.x == 0) one = 1;
    __syncthreads();
    x[blockIdx.x] = one;
}
struct Pair { float a, b; };
__global__ void takes_pair(float* x, Pair pair) {}
__global__ void numbers(double* out, bool yes, char c, unsigned u, long long l, double d) {
    out[0] = yes, out[1] = c, out[2] = u, out[3] = l, out[4] = d;
}
__global__ void where(int* out) {
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = 10000 * block + thread;
}
__global__ void count(int* out, unsigned* unsigneds, double* doubles) {
    const int odd = threadIdx.x & 1;
    out[0] = __syncthreads_count(odd), out[1] = __syncthreads_or(odd), out[2] = __syncthreads_and(odd);
    atomicAdd(out + 3, 2), atomicSub(out + 4, 1);
    atomicMax(out + 5, (int)threadIdx.x), atomicMin(out + 6, -(int)threadIdx.x);
    int seen = out[7], before;
    do before = seen, seen = atomicCAS(out + 7, before, before + 3);
    while (seen != before);
    atomicInc(unsigneds, 9), atomicOr(unsigneds + 1, 1u << threadIdx.x % 32), atomicExch(unsigneds + 2, threadIdx.x);
    atomicAdd(doubles, 0.5);
}
__global__ void bits(unsigned* out, float* floats) {
    out[0] = __popc(0xf0f0u), out[1] = __clz(1), out[2] = __ffs(8), out[3] = __brev(1u);
    out[4] = __byte_perm(0x33221100, 0x77665544, 0x7531), out[5] = __umulhi(0x80000000u, 6);
    out[6] = __float_as_uint(1.0f);
    out[7] = __funnelshift_l(0x80000000u, 1, 1), out[8] = (unsigned)min(-3, 2), out[9] = max(3u, 7u);
    out[10] = __dp4a(0x01020304, 0x01010101, 5), out[11] = warpSize;
    floats[0] = rsqrtf(4), floats[1] = __expf(1), floats[2] = __int_as_float(0x40000000), floats[3] = min(2.5f, 1.5f);
    floats[4] = __fmaf_rn(2, 3, 4), floats[5] = __fdividef(1, 4);
    floats[6] = __saturatef(3), floats[7] = fmaxf(-1, sqrtf(2));
}
static_assert(sizeof(float4) == 16 && alignof(float4) == 16 && alignof(float2) == 8 && alignof(float3) == 4, "vectors");
static_assert(alignof(double2) == 16 && alignof(int2) == 8 && alignof(uint4) == 16 && sizeof(uchar4) == 4, "vectors");
""")
EITHER_WAY = pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])


@pytest.fixture
def make(load):
    return partial(load, CUDA)


@pytest.mark.parametrize(("kind", "dtype"), [("float", torch.float32), ("double", torch.float64)])
@pytest.mark.parametrize("n", [1, 255, 256, 4099])
def test_a_kernel_on_its_elements_alone(make, kind, dtype, n):
    x, y = torch.randn(2, n + 8, dtype=dtype)
    expected = torch.cat([2.5 * x[:n] + y[:n], y[n:]])
    make(f"saxpy<{kind}>", 256)(-(-n // 256), x, y, 2.5, n)
    assert torch.allclose(y, expected, rtol=1e-6)
    make(f"saxpy<{kind}>", 256)(-(-n // 256), x, y, 0, n)  # an int where the kernel takes a float
    assert torch.allclose(y, expected, rtol=1e-6)


@EITHER_WAY
@pytest.mark.parametrize("n", [1, 17, 130])
def test_a_tiled_matrix_product(make, n, backward):
    a, b, c = torch.randn(n, n), torch.randn(n, n), torch.full((n, n), math.nan)
    blocks = -(-n // 16)
    make("tiled<16, true, true>", (16, 16), backward)((blocks, blocks), a, b, c, n)
    assert torch.allclose(c.double(), a.double() @ b.double(), rtol=1e-4, atol=1e-5)


@EITHER_WAY
@pytest.mark.parametrize("barriers", ["false, true", "true, false"])
def test_a_missing_barrier_shows_in_the_result(make, barriers, backward):
    """Of elements that no thread had written yet, or that were overwritten too early."""
    a, b, c = torch.randn(48, 48), torch.randn(48, 48), torch.zeros(48, 48)
    make(f"tiled<16, {barriers}>", (16, 16), backward)((3, 3), a, b, c, 48)
    assert not torch.allclose(c.double(), a.double() @ b.double(), rtol=1e-2, atol=1e-2)


@EITHER_WAY
@pytest.mark.parametrize("n", [1, 31, 1000, 4099])
def test_a_tree_in_shared_memory(make, n, backward):
    x, out = torch.randn(n), torch.zeros(1)
    make("tree", 128, backward, shared_bytes=128 * 4)(3, x, out, n)
    assert out.item() == pytest.approx(x.double().sum().item(), rel=1e-4, abs=1e-4)


@EITHER_WAY
def test_shuffles_and_votes(make, backward):
    x, down, both = torch.randn(64), torch.empty(64), torch.empty(64)
    odd = torch.empty(64, dtype=torch.int32)
    make("warps", 64, backward)(1, x, down, both, odd)
    sums = x.view(2, 32).sum(1)
    assert torch.allclose(down[::32], sums, rtol=1e-5, atol=1e-5)
    assert torch.allclose(both.view(2, 32), sums[:, None].expand(2, 32), rtol=1e-5, atol=1e-5)
    assert odd.tolist() == [0xAAAAAAAA - 2**32] * 64


@EITHER_WAY
def test_lanes_of_shuffles(make, backward):
    out = torch.empty(224, dtype=torch.int32)
    make("lanes", 32, backward)(1, out)
    up, down, one, xor, masked, other, beyond = out.view(7, 32).tolist()
    assert up == [lane - 3 if lane % 8 >= 3 else lane for lane in range(32)]
    assert down == [lane + 3 if lane % 8 < 5 else lane for lane in range(32)]
    assert one == [lane // 8 * 8 + 1 for lane in range(32)]
    assert xor == [lane ^ 9 if (lane ^ 9) < lane // 8 * 8 + 8 else lane for lane in range(32)]
    assert masked == [2 * (15 - lane) for lane in range(16)] + [1] * 16
    assert other == [-3 + 8] * 32
    assert beyond == [-1] * 32


@pytest.mark.parametrize("threads", [5, (5, 3), (4, 3, 2)])
def test_indices_in_three_dimensions(make, threads):
    size = math.prod(threads) if isinstance(threads, tuple) else threads
    out = torch.empty(24 * size, dtype=torch.int32)
    make("where", threads)((2, 3, 4), out)
    assert out.tolist() == [10000 * block + thread for block in range(24) for thread in range(size)]


@EITHER_WAY
def test_atomics_and_what_a_barrier_counts(make, backward):
    out, doubles = torch.zeros(8, dtype=torch.int32), torch.zeros(1, dtype=torch.float64)
    unsigneds = torch.zeros(3, dtype=torch.int32)
    make("count", 100, backward)(1, out, unsigneds, doubles)
    assert out.tolist() == [50, 1, 0, 200, -100, 99, -99, 300]
    assert unsigneds.tolist() == [0, -1, 0 if backward else 99]
    assert doubles.item() == 50


def test_functions_of_bits_and_of_floats(make):
    out, floats = torch.empty(12, dtype=torch.int32), torch.empty(8)
    make("bits", 1)(1, out, floats)
    ints = [8, 31, 4, -(2**31), 0x77553311, 3, 0x3F800000, 3, -3, 7, 15, 32]
    assert out.tolist() == ints
    assert floats.tolist() == pytest.approx([0.5, math.e, 2.0, 1.5, 10.0, 0.25, 1.0, 2**0.5])


def test_shared_memory_holds_nothing_of_the_block_before(make):
    x = torch.zeros(2)
    make("kept", 32)(2, x)
    assert x[0] == 1
    assert x[1].isnan()


def test_arguments_are_what_the_kernel_declares(make):
    out = torch.empty(5, dtype=torch.float64)
    launch = make("numbers", 1)
    launch(1, out, True, -3, 2**32 - 1, -(2**40), 0.1)
    assert out.tolist() == [1, -3, 2**32 - 1, -(2**40), 0.1]
    launch(1, out, 0, 3, 7, 2**40, 2)
    assert out.tolist() == [0, 3, 7, 2**40, 2]
    with pytest.raises(TypeError, match="numbers takes 6 arguments, and got 5"):
        launch(1, out, True, 3, 7, 2**40)
    with pytest.raises(TypeError, match="numbers takes 6 arguments, and got 7"):
        launch(1, out, True, 3, 7, 2**40, 2, 2)
    with pytest.raises(OverflowError, match="declare it long long"):
        launch(1, out, True, 3, 2**32, 2**40, 2)
    with pytest.raises(
        TypeError, match="argument 3 of numbers is a tensor, and the kernel takes a number"
    ):
        launch(1, out, True, out, 7, 2**40, 2)
    with pytest.raises(TypeError, match="parameter 2 of takes_pair is a struct"):
        make("takes_pair", 1)(1, out, 0)


def test_what_does_not_compile_is_said_with_its_line(load):
    wrong = CudaSource("""
__global__ void wrong(float* x) {
    x[0] = missing;
}
""")
    with pytest.raises(KernelError, match=rf"test_shim.py:{wrong.line + 2}:.*missing"):
        load(wrong, "wrong")(1, torch.ones(1))


def test_shared_arrays_are_rewritten_and_comments_left_out():
    code = """/* __shared__ is; */ __shared__ __align__(16) float a[2][N], *b; // extern __shared__ int x[];
extern __shared__ alignas(8) unsigned char c[];"""
    first, second = rewritten(code).splitlines()
    assert first.split() == [
        "static",
        "__attribute__((aligned(16)))",
        "float",
        "a[2][N],",
        "*b;",
        "gpulab_shared(&a,",
        "sizeof(a));",
        "gpulab_shared(&b,",
        "sizeof(b));",
    ]
    assert second == "unsigned char* c = reinterpret_cast<unsigned char*>(gpulab_dynamic_shared());"
