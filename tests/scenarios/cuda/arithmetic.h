// Functions of numbers and of their bits, which NVRTC knows without a header.
#pragma once

#define GPULAB_ORDER(A, B, T)                                            \
    static inline T min(A a, B b) { return (T)a < (T)b ? (T)a : (T)b; }  \
    static inline T max(A a, B b) { return (T)a > (T)b ? (T)a : (T)b; }
GPULAB_ORDER(int, int, int)
GPULAB_ORDER(unsigned, unsigned, unsigned)
GPULAB_ORDER(int, unsigned, unsigned)
GPULAB_ORDER(unsigned, int, unsigned)
GPULAB_ORDER(long, long, long)
GPULAB_ORDER(unsigned long, unsigned long, unsigned long)
GPULAB_ORDER(long long, long long, long long)
GPULAB_ORDER(unsigned long long, unsigned long long, unsigned long long)
GPULAB_ORDER(long long, unsigned long long, unsigned long long)
GPULAB_ORDER(unsigned long long, long long, unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin(a, b); }
static inline double max(float a, double b) { return fmax(a, b); }
static inline double min(double a, float b) { return fmin(a, b); }
static inline double max(double a, float b) { return fmax(a, b); }

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline float sinpif(float x) { return (float)sin(x * M_PI); }
static inline float cospif(float x) { return (float)cos(x * M_PI); }
static inline float normcdff(float x) { return (float)(0.5 * erfc(-x * M_SQRT1_2)); }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float gpulab_expf(float x) { return expf(x); }
static inline float gpulab_exp10f(float x) { return powf(10.0f, x); }
static inline float gpulab_logf(float x) { return logf(x); }
static inline float gpulab_log2f(float x) { return log2f(x); }
static inline float gpulab_log10f(float x) { return log10f(x); }
static inline float gpulab_sinf(float x) { return sinf(x); }
static inline float gpulab_cosf(float x) { return cosf(x); }
static inline float gpulab_tanf(float x) { return tanf(x); }
static inline void gpulab_sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
static inline float gpulab_powf(float x, float y) { return powf(x, y); }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

static inline float __int_as_float(int x) { return gpulab::bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return gpulab::bits<float>(x); }
static inline int __float_as_int(float x) { return gpulab::bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return gpulab::bits<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return gpulab::bits<double>(x); }
static inline long long __double_as_longlong(double x) { return gpulab::bits<long long>(x); }
static inline int __float2int_rn(float x) { return (int)rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline int __float2int_rd(float x) { return (int)floorf(x); }
static inline int __float2int_ru(float x) { return (int)ceilf(x); }
static inline unsigned __float2uint_rn(float x) { return (unsigned)rintf(x); }
static inline unsigned __float2uint_rz(float x) { return (unsigned)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __double2float_rn(double x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int bit = 0; bit < 32; bit++) y |= (x >> bit & 1u) << (31 - bit);
    return y;
}
static inline int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
static inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return (unsigned)((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned select) {
    uint64_t both = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int byte = 0; byte < 4; byte++) {
        unsigned from = select >> 4 * byte & 15, taken = (unsigned)(both >> 8 * (from & 7)) & 255;
        result |= (from & 8 ? (taken & 128 ? 255u : 0u) : taken) << 8 * byte;
    }
    return result;
}
static inline int __dp4a(int x, int y, int sum) {
    for (int byte = 0; byte < 4; byte++) sum += (int)(signed char)(x >> 8 * byte) * (int)(signed char)(y >> 8 * byte);
    return sum;
}
