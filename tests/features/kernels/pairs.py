"""Pairs of kernels that differ in one known thing, and the words in which the difference has to
name it.
"""

from dataclasses import dataclass

from gpulab.core.payloads import KernelText

SOURCE = r"""
template <int WORK> __device__ float busy(const float* in, long long i, long long n) {
    float values[WORK], sum = 0;
    #pragma unroll
    for (int k = 0; k < WORK; ++k) values[k] = in[i + k * n];
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
        #pragma unroll
        for (int k = 0; k < WORK; ++k) sum = fmaf(values[k], values[(k + j) % WORK], sum);
    }
    return sum;
}
template <int WORK> __global__ void plain_bounds(const float* in, float* out, long long n) {
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    out[i] = busy<WORK>(in, i, n);
}
template <int WORK, int BLOCKS> __global__ void __launch_bounds__(256, BLOCKS)
bounded(const float* in, float* out, long long n) {
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    out[i] = busy<WORK>(in, i, n);
}
template <typename T> __global__ void copy(const T* in, T* out) {
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    out[i] = in[i];
}
template <bool FUSED> __global__ void multiply_add(const float* in, float* out, float a, float b) {
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    float x = in[i];
    #pragma unroll
    for (int k = 0; k < 16; ++k) x = FUSED ? fmaf(x, a, b) : __fadd_rn(__fmul_rn(x, a), b);
    out[i] = x;
}
template <int PITCH> __global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[32][PITCH];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[(long long)y * n + x];
    __syncthreads();
    const long long row = blockIdx.x * 32 + threadIdx.y;
    out[row * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void rolled(const float* in, float* out, float a) {
    float x = in[threadIdx.x];
    #pragma unroll 1
    for (int k = 0; k < 32; ++k) x = fmaf(x, a, 1.0f);
    out[threadIdx.x] = x;
}
__global__ void unrolled(const float* in, float* out, float a) {
    float x = in[threadIdx.x];
    #pragma unroll
    for (int k = 0; k < 32; ++k) x = fmaf(x, a, 1.0f);
    out[threadIdx.x] = x;
}
__global__ void aliased(const float* in, const float* scale, float* out, int n) {
    const int i = threadIdx.x;
    for (int k = 0; k < 4; ++k) out[i + k * n] = in[i + k * n] * scale[i];
}
#define APART __restrict__
__global__ void unaliased(const float* APART in, const float* APART scale, float* APART out, int n) {
    const int i = threadIdx.x;
    for (int k = 0; k < 4; ++k) out[i + k * n] = in[i + k * n] * scale[i];
}
__global__ void selected(const float* in, float* out, int rounds) {
    float x = in[threadIdx.x], y = x;
    for (int k = 0; k < rounds; ++k) y = fmaf(y, y, 1.0f);
    out[threadIdx.x] = x > 0 ? y : 0.5f * x;
}
__global__ void branching(const float* in, float* out, int rounds) {
    float x = in[threadIdx.x];
    if (x > 0) {
        for (int k = 0; k < rounds; ++k) x = fmaf(x, x, 1.0f);
    } else {
        x = 0.5f * x;
    }
    out[threadIdx.x] = x;
}
template <int TILE> __global__ void tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        #pragma unroll
        for (int j = 0; j < TILE; ++j) sum = fmaf(left[threadIdx.y][j], right[j][threadIdx.x], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}
__global__ void by_fma(const float* a, const float* b, float* c) {
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 8; ++k) sum = fmaf(a[threadIdx.x * 8 + k], b[k * 32 + threadIdx.x], sum);
    c[threadIdx.x] = sum;
}
__global__ void by_tensor_cores(const unsigned* a, const unsigned* b, float* c) {
    const int lane = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    const unsigned x[6] = {a[lane], a[lane + 32], a[lane + 64], a[lane + 96], b[lane], b[lane + 32]};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]));
    for (int k = 0; k < 4; ++k) c[lane + 32 * k] = d[k];
}
template <int STRIDE> __global__ void strided(const float* in, float* out) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    #pragma unroll
    for (int k = 0; k < 32; ++k) {
        const int place = blockIdx.x * 8192 + warp * 1024 + (STRIDE == 1 ? k * 32 + lane : lane * 32 + k);
        out[place] = in[place] + 1;
    }
}
"""


@dataclass(frozen=True)
class Pair:
    """`said` are words that the line has to hold, in their order."""

    cause: str
    before: str
    after: str
    said: tuple[str, ...]
    threads: tuple[int, int, int] = (256, 1, 1)

    def text(self, name):
        return KernelText(name, SOURCE, 1, (), self.threads)


PAIRS = (
    Pair("spill", "bounded<48,1>", "bounded<48,8>", ("spilled registers 0 B → ", "occupancy")),
    Pair(
        "unvectorized load",
        "copy<float4>",
        "copy<float>",
        ("128-bit loads 1 → 0", "32-bit loads 0 → 1"),
    ),
    Pair(
        "no FMA",
        "multiply_add<true>",
        "multiply_add<false>",
        ("FMAs 16 → 0", "adds and multiplies 0 → 32"),
    ),
    Pair(
        "bank conflict",
        "transpose<33>",
        "transpose<32>",
        ("bank conflicts none → 32-way",),
        (32, 32, 1),
    ),
    Pair(
        "launch bounds", "plain_bounds<64>", "bounded<64,4>", ("registers", "occupancy 37.5 → 50 %")
    ),
    Pair("unrolled", "rolled", "unrolled", ("loops 1 → 0", "FMAs")),
    Pair("restrict", "aliased", "unaliased", ("32-bit loads 8 → 5",)),
    Pair("divergence", "selected", "branching", ("divergent branches 0 → ",)),
    Pair(
        "tile size", "tiled<16>", "tiled<32>", ("shared memory 2.00 KiB → 8.00 KiB",), (32, 32, 1)
    ),
    Pair(
        "tensor core",
        "by_fma",
        "by_tensor_cores",
        ("mma instructions 0 → 1", "FMAs"),
        (32, 1, 1),
    ),
    Pair("coalescing", "strided<1>", "strided<32>", ("used of each sector loaded 100 → 12.5 %",)),
)
