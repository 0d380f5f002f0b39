// CUDA C++ as g++ compiles it: one thread of one block at a time. What it calls is in runtime.cpp.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <tuple>
#include <type_traits>

// Vectors, aligned as on a GPU.

#define GPULAB_VECTORS(T, name, align_2, align_4)                                              \
    struct name##1 { T x; };                                                                   \
    struct alignas(align_2) name##2 { T x, y; };                                               \
    struct name##3 { T x, y, z; };                                                             \
    struct alignas(align_4) name##4 { T x, y, z, w; };                                         \
    static inline name##1 make_##name##1(T x) { return {x}; }                                  \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                          \
    static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                  \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
GPULAB_VECTORS(signed char, char, 2, 4)
GPULAB_VECTORS(unsigned char, uchar, 2, 4)
GPULAB_VECTORS(short, short, 4, 8)
GPULAB_VECTORS(unsigned short, ushort, 4, 8)
GPULAB_VECTORS(int, int, 8, 16)
GPULAB_VECTORS(unsigned int, uint, 8, 16)
GPULAB_VECTORS(long, long, 16, 16)
GPULAB_VECTORS(unsigned long, ulong, 16, 16)
GPULAB_VECTORS(long long, longlong, 16, 16)
GPULAB_VECTORS(unsigned long long, ulonglong, 16, 16)
GPULAB_VECTORS(float, float, 8, 16)
GPULAB_VECTORS(double, double, 16, 16)

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};

// The runtime.

enum Wait { RUNS, ENDED, AT_BARRIER, AT_WARP };
enum Gather { EXCHANGE, BALLOT, ADD, AND, OR, XOR, LEAST, MOST, LEAST_SIGNED, MOST_SIGNED, MATCH };

extern "C" {
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
int gpulab_barrier(int predicate, int line, int* all);
uint64_t gpulab_warp(unsigned mask, int gather, uint64_t value, int source, int line);
unsigned gpulab_active();
int gpulab_lane();
void gpulab_shared(void* array, uint64_t bytes);
void* gpulab_dynamic_shared();
void gpulab_misaligned(const void* address, uint64_t alignment, int line);
[[noreturn]] void gpulab_trap(int line);
}

constexpr int warpSize = 32;

namespace gpulab {
template <typename To, typename From> inline To bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    __builtin_memcpy(&to, &value, sizeof(To));
    return to;
}

template <typename T> inline uint64_t widen(T value) {
    static_assert(std::is_arithmetic<T>::value, "a number");
    uint64_t wide = 0;
    __builtin_memcpy(&wide, &value, sizeof(T));
    return wide;
}

template <typename T> inline T narrow(uint64_t wide) {
    T value;
    __builtin_memcpy(&value, &wide, sizeof(T));
    return value;
}

template <typename T> inline T exchange(unsigned mask, T value, int source, int line) {
    return narrow<T>(gpulab_warp(mask, EXCHANGE, widen(value), source, line));
}

inline int first_of(int lane, int width) { return lane & ~(width - 1); }

template <typename T> inline T load(const T* p, int line) {
    if (reinterpret_cast<uintptr_t>(p) % alignof(T)) gpulab_misaligned(p, alignof(T), line);
    return *p;
}

template <typename T> inline void store(T* p, T value, int line) {
    if (reinterpret_cast<uintptr_t>(p) % alignof(T)) gpulab_misaligned(p, alignof(T), line);
    *p = value;
}

// The parameters of a kernel: a letter for each, as Python's struct module has them.
template <typename T> constexpr char letter() {
    if (std::is_pointer<T>::value) return 'P';
    if (std::is_same<T, bool>::value) return '?';
    if (std::is_floating_point<T>::value) return sizeof(T) == 4 ? 'f' : 'd';
    if (!std::is_integral<T>::value && !std::is_enum<T>::value) return 's';
    constexpr bool is_signed = std::is_signed<T>::value;
    return (is_signed ? "?bh?i???q" : "?BH?I???Q")[sizeof(T)];
}

template <typename... A> struct Call {
    static inline std::tuple<A...> arguments;
    static inline void (*kernel)(A...);
    static inline const char letters[] = {letter<A>()..., 0};
    static void run() { std::apply(kernel, arguments); }
};

template <typename... A> const char* letters_of(void (*)(A...)) { return Call<A...>::letters; }

template <typename... A> void (*bind(void (*kernel)(A...), const uint64_t* values))() {
    Call<A...>::kernel = kernel;
    std::apply(
        [&](A&... argument) {
            int place = 0;
            auto set = [](auto& argument, uint64_t value) { __builtin_memcpy(&argument, &value, sizeof(argument) < 8 ? sizeof(argument) : 8); };
            (set(argument, values[place++]), ...);
        },
        Call<A...>::arguments);
    return &Call<A...>::run;
}
}  // namespace gpulab

// Barriers, warps, fences.

#define GPULAB_LINE int line = __builtin_LINE()
static inline void __syncthreads(GPULAB_LINE) { gpulab_barrier(0, line, nullptr); }
static inline int __syncthreads_count(int predicate, GPULAB_LINE) { return gpulab_barrier(predicate, line, nullptr); }
static inline int __syncthreads_or(int predicate, GPULAB_LINE) { return gpulab_barrier(predicate, line, nullptr) > 0; }
static inline int __syncthreads_and(int predicate, GPULAB_LINE) {
    int all;
    gpulab_barrier(predicate, line, &all);
    return all;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, GPULAB_LINE) { gpulab_warp(mask, BALLOT, 0, 0, line); }
static inline unsigned __activemask() { return gpulab_active(); }
static inline unsigned __ballot_sync(unsigned mask, int predicate, GPULAB_LINE) {
    return (unsigned)gpulab_warp(mask, BALLOT, predicate != 0, 0, line);
}
static inline int __any_sync(unsigned mask, int predicate, GPULAB_LINE) {
    return gpulab_warp(mask, BALLOT, predicate != 0, 0, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, GPULAB_LINE) {
    return gpulab_warp(mask, BALLOT, predicate == 0, 0, line) == 0;
}
template <typename T> inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, GPULAB_LINE) {
    return gpulab::exchange(mask, value, gpulab::first_of(gpulab_lane(), width) | (source & (width - 1)), line);
}
template <typename T> inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, GPULAB_LINE) {
    int lane = gpulab_lane(), source = lane - (int)delta;
    return gpulab::exchange(mask, value, source < gpulab::first_of(lane, width) ? lane : source, line);
}
template <typename T> inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, GPULAB_LINE) {
    int lane = gpulab_lane(), source = lane + (int)delta;
    return gpulab::exchange(mask, value, source >= gpulab::first_of(lane, width) + width ? lane : source, line);
}
template <typename T> inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, GPULAB_LINE) {
    int lane = gpulab_lane(), source = lane ^ lanes;
    return gpulab::exchange(mask, value, source >= gpulab::first_of(lane, width) + width ? lane : source, line);
}
template <typename T> inline unsigned __match_any_sync(unsigned mask, T value, GPULAB_LINE) {
    return (unsigned)gpulab_warp(mask, MATCH, gpulab::widen(value), 0, line);
}
#define GPULAB_REDUCE(name, T, gather) \
    static inline T name(unsigned mask, T value, GPULAB_LINE) { return (T)gpulab_warp(mask, gather, (uint64_t)value, 0, line); }
GPULAB_REDUCE(__reduce_add_sync, unsigned, ADD)
GPULAB_REDUCE(__reduce_add_sync, int, ADD)
GPULAB_REDUCE(__reduce_and_sync, unsigned, AND)
GPULAB_REDUCE(__reduce_or_sync, unsigned, OR)
GPULAB_REDUCE(__reduce_xor_sync, unsigned, XOR)
GPULAB_REDUCE(__reduce_min_sync, unsigned, LEAST)
GPULAB_REDUCE(__reduce_max_sync, unsigned, MOST)
GPULAB_REDUCE(__reduce_min_sync, int, LEAST_SIGNED)
GPULAB_REDUCE(__reduce_max_sync, int, MOST_SIGNED)
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline void __nanosleep(unsigned) {}
[[noreturn]] static inline void __trap(GPULAB_LINE) { gpulab_trap(line); }
static inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }

// Atomics: no other thread runs meanwhile.

#define GPULAB_ATOMIC(name, T, result)                                     \
    static inline T name(T* p, std::common_type<T>::type value, GPULAB_LINE) { \
        T old = gpulab::load(p, line);                                     \
        *p = (T)(result);                                                  \
        return old;                                                        \
    }
#define GPULAB_ATOMIC_BITS(T)              \
    GPULAB_ATOMIC(atomicAnd, T, old & value) \
    GPULAB_ATOMIC(atomicOr, T, old | value)  \
    GPULAB_ATOMIC(atomicXor, T, old ^ value) \
    static inline T atomicCAS(T* p, T compare, T value, GPULAB_LINE) { \
        T old = gpulab::load(p, line);     \
        if (old == compare) *p = value;    \
        return old;                        \
    }
#define GPULAB_ATOMIC_ORDER(T)                               \
    GPULAB_ATOMIC(atomicMin, T, value < old ? value : old)   \
    GPULAB_ATOMIC(atomicMax, T, value > old ? value : old)
GPULAB_ATOMIC(atomicAdd, int, (unsigned)old + (unsigned)value)
GPULAB_ATOMIC(atomicAdd, unsigned int, old + value)
GPULAB_ATOMIC(atomicAdd, unsigned long long, old + value)
GPULAB_ATOMIC(atomicAdd, float, old + value)
GPULAB_ATOMIC(atomicAdd, double, old + value)
GPULAB_ATOMIC(atomicSub, int, (unsigned)old - (unsigned)value)
GPULAB_ATOMIC(atomicSub, unsigned int, old - value)
GPULAB_ATOMIC(atomicExch, int, value)
GPULAB_ATOMIC(atomicExch, unsigned int, value)
GPULAB_ATOMIC(atomicExch, unsigned long long, value)
GPULAB_ATOMIC(atomicExch, float, value)
GPULAB_ATOMIC(atomicInc, unsigned int, old >= value ? 0 : old + 1)
GPULAB_ATOMIC(atomicDec, unsigned int, old == 0 || old > value ? value : old - 1)
GPULAB_ATOMIC_BITS(int)
GPULAB_ATOMIC_BITS(unsigned int)
GPULAB_ATOMIC_BITS(unsigned long long)
GPULAB_ATOMIC_ORDER(int)
GPULAB_ATOMIC_ORDER(unsigned int)
GPULAB_ATOMIC_ORDER(long long)
GPULAB_ATOMIC_ORDER(unsigned long long)

// Loads and stores that name a cache.

#define GPULAB_LOAD(name) \
    template <typename T> inline T name(const T* p, GPULAB_LINE) { return gpulab::load(p, line); }
#define GPULAB_STORE(name) \
    template <typename T> inline void name(T* p, typename std::common_type<T>::type value, GPULAB_LINE) { gpulab::store(p, value, line); }
GPULAB_LOAD(__ldg)
GPULAB_LOAD(__ldca)
GPULAB_LOAD(__ldcg)
GPULAB_LOAD(__ldcs)
GPULAB_LOAD(__ldcv)
GPULAB_LOAD(__ldlu)
GPULAB_STORE(__stcg)
GPULAB_STORE(__stcs)
GPULAB_STORE(__stwb)
GPULAB_STORE(__stwt)

// Arithmetic.

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

// Last, since the system's headers use these words.

#define __expf gpulab_expf
#define __exp10f gpulab_exp10f
#define __logf gpulab_logf
#define __log2f gpulab_log2f
#define __log10f gpulab_log10f
#define __sinf gpulab_sinf
#define __cosf gpulab_cosf
#define __tanf gpulab_tanf
#define __sincosf gpulab_sincosf
#define __powf gpulab_powf
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __managed__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)
#define __builtin_assume(condition)
