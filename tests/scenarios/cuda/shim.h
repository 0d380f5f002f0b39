// CUDA C++ as g++ compiles it: one thread of one block at a time. What it calls is in runtime.cpp.
// Of what NVRTC knows without a header, this is what lessons use, and some more.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <tuple>
#include <type_traits>

#include "gather.h"

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
long long gpulab_clock();
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
            auto set = [](auto& argument, uint64_t value) {
                __builtin_memcpy(&argument, &value, sizeof(argument) < 8 ? sizeof(argument) : 8);
            };
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
static inline void __syncwarp(unsigned mask = 0xffffffffu, GPULAB_LINE) { gpulab_warp(mask, MEET, 0, 0, line); }
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
#define GPULAB_REDUCE(name, T, gather)                               \
    static inline T name(unsigned mask, T value, GPULAB_LINE) {      \
        return (T)gpulab_warp(mask, gather, (uint64_t)value, 0, line); \
    }
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
static inline long long clock64() { return gpulab_clock(); }

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
    template <typename T> inline void name(T* p, typename std::common_type<T>::type value, GPULAB_LINE) { \
        gpulab::store(p, value, line);                                                                   \
    }
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

#include "arithmetic.h"

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
