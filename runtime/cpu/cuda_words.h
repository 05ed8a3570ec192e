// CUDA's words for the host compiler: qualifiers, vector types, shuffles, atomics, intrinsics.
#pragma once
#include "collectives.h"

#define __global__ __attribute__((visibility("hidden")))   // else a function of that name in another library could be called
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#endif
template <typename T> T* start_at(T* pointer) { return pointer; }
#define __shared__ static   // one block at a time: its shared memory is the program's
#define TILEWRIGHT_LINE int line = __builtin_LINE()

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// ---------------------------------------------------------------------------------------------- synchronisation

inline void __syncthreads(TILEWRIGHT_LINE)
{
    tilewright::barrier(0, tilewright::engine.num_threads, "__syncthreads", line);
}
inline void __syncwarp(unsigned mask = 0xffffffff, TILEWRIGHT_LINE)
{
    const void* token = &tilewright::engine.warps[tilewright::engine.current / tilewright::LANES];
    tilewright::release_both(token);   // what a lane has written, the others see afterwards
    tilewright::warp_operation(mask, "__syncwarp", line, nullptr, [](void**, unsigned) TILEWRIGHT_UNCHECKED {});
    tilewright::acquire_both(token);
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) {}
inline void __trap(TILEWRIGHT_LINE) { tilewright::fail("the kernel trapped", line); }
#undef assert
#define assert(condition) ((condition) ? void(0) : tilewright::fail("assertion failed: " #condition, __LINE__))

namespace tilewright {
template <typename T> struct Shuffled { T value, result; int source; };

// The value of the lane `source`, for all lanes of the mask.
template <typename T> TILEWRIGHT_UNCHECKED T shuffled(unsigned mask, T value, int source, const char* name, int line)
{
    Shuffled<T> mine{value, value, source % LANES};
    warp_operation(mask, name, line, &mine, [](void** values, unsigned lanes) TILEWRIGHT_UNCHECKED {
        for (int lane = 0; lane < LANES; ++lane) {
            if (!(lanes >> lane & 1)) continue;
            auto* taker = static_cast<Shuffled<T>*>(values[lane]);
            if (lanes >> taker->source & 1) taker->result = static_cast<Shuffled<T>*>(values[taker->source])->value;
        }
    });
    return mine.result;
}
}

// The value of the lane whose number differs by the bits of `distance`; that of lane `source`.
template <typename T>
TILEWRIGHT_UNCHECKED T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32, TILEWRIGHT_LINE)
{
    (void)width;
    const int lane = tilewright::engine.current % tilewright::LANES;
    return tilewright::shuffled(mask, value, lane ^ distance, "__shfl_xor_sync", line);
}
template <typename T>
TILEWRIGHT_UNCHECKED T __shfl_sync(unsigned mask, T value, int source, int width = 32, TILEWRIGHT_LINE)
{
    (void)width;
    return tilewright::shuffled(mask, value, source, "__shfl_sync", line);
}

// What all lanes of the mask have, combined.
namespace tilewright {
template <typename T, typename Combine>
TILEWRIGHT_UNCHECKED T combined_lanes(unsigned mask, T value, const char* name, int line, Combine combine)
{
    warp_operation(mask, name, line, &value, [combine](void** values, unsigned lanes) TILEWRIGHT_UNCHECKED {
        const int first = __builtin_ctz(lanes);
        T all = *static_cast<T*>(values[first]);
        for (int lane = first + 1; lane < LANES; ++lane)
            if (lanes >> lane & 1) all = combine(all, *static_cast<T*>(values[lane]));
        for (int lane = first; lane < LANES; ++lane)
            if (lanes >> lane & 1) *static_cast<T*>(values[lane]) = all;
    });
    return value;
}
}
#define TILEWRIGHT_OVER_WARP(NAME, T, RESULT)                                                                   \
    TILEWRIGHT_UNCHECKED inline T NAME(unsigned mask, T value, TILEWRIGHT_LINE)                                 \
    {                                                                                                           \
        return tilewright::combined_lanes(mask, value, #NAME, line, [](T a, T b) TILEWRIGHT_UNCHECKED {         \
            return static_cast<T>(RESULT);                                                                      \
        });                                                                                                     \
    }
TILEWRIGHT_OVER_WARP(__reduce_add_sync, unsigned, a + b)
TILEWRIGHT_OVER_WARP(__reduce_add_sync, int, static_cast<unsigned>(a) + static_cast<unsigned>(b))   // which wraps
TILEWRIGHT_OVER_WARP(__reduce_max_sync, unsigned, a > b ? a : b)
TILEWRIGHT_OVER_WARP(__reduce_max_sync, int, a > b ? a : b)
TILEWRIGHT_OVER_WARP(__reduce_min_sync, unsigned, a < b ? a : b)
TILEWRIGHT_OVER_WARP(__reduce_min_sync, int, a < b ? a : b)
TILEWRIGHT_OVER_WARP(__reduce_and_sync, unsigned, a & b)
TILEWRIGHT_OVER_WARP(__reduce_or_sync, unsigned, a | b)
TILEWRIGHT_OVER_WARP(__reduce_xor_sync, unsigned, a ^ b)
#undef TILEWRIGHT_OVER_WARP

// --------------------------------------------------------------------------------------------------------- atomics

// The sanitizer must see atomics as such, so they go through the compiler's own operations on the bits.
namespace tilewright {
template <int BYTES> struct BitsOf;
template <> struct BitsOf<2> { using Type = uint16_t; };
template <> struct BitsOf<4> { using Type = uint32_t; };
template <> struct BitsOf<8> { using Type = uint64_t; };
template <typename T> struct Same { using Type = T; };
template <typename T> using As = typename Same<T>::Type;   // of a parameter: what is passed is converted to T

template <typename T, typename Change>
T atomic_change(T* address, Change change)
{
    using Bits = typename BitsOf<sizeof(T)>::Type;
    if (reinterpret_cast<uintptr_t>(address) % sizeof(T)) fail("misaligned atomic access", 0);
    Bits* place = reinterpret_cast<Bits*>(address);
    Bits old_bits = __atomic_load_n(place, __ATOMIC_RELAXED), new_bits;
    T old_value;
    do {
        memcpy(&old_value, &old_bits, sizeof(T));
        const T new_value = change(old_value);
        memcpy(&new_bits, &new_value, sizeof(T));
    } while (!__atomic_compare_exchange_n(place, &old_bits, new_bits, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return old_value;
}
}

#define TILEWRIGHT_ATOMIC(name, expression)                                                                        \
    template <typename T> T name(T* address, tilewright::As<T> value)                                              \
    { return tilewright::atomic_change(address, [=](T old) -> T { return expression; }); }
#define TILEWRIGHT_ATOMICS(suffix)                                                                                 \
    TILEWRIGHT_ATOMIC(atomicAdd##suffix, old + value)                                                              \
    TILEWRIGHT_ATOMIC(atomicMax##suffix, old < value ? value : old)                                                \
    TILEWRIGHT_ATOMIC(atomicMin##suffix, value < old ? value : old)                                                \
    TILEWRIGHT_ATOMIC(atomicAnd##suffix, old & value)                                                              \
    TILEWRIGHT_ATOMIC(atomicOr##suffix, old | value)                                                               \
    TILEWRIGHT_ATOMIC(atomicXor##suffix, old ^ value)                                                              \
    TILEWRIGHT_ATOMIC(atomicExch##suffix, ((void)old, value))                                                      \
    template <typename T> T atomicCAS##suffix(T* address, tilewright::As<T> compare, tilewright::As<T> value)     \
    { return tilewright::atomic_change(address, [=](T old) -> T { return old == compare ? value : old; }); }
TILEWRIGHT_ATOMICS()
TILEWRIGHT_ATOMICS(_block)
TILEWRIGHT_ATOMICS(_system)

namespace tilewright {
// Adds to N elements at an address that is aligned to all of them, to each atomically.
template <int N, typename T> void add_elements(void* address, const T* values)
{
    if (reinterpret_cast<uintptr_t>(address) % (N * sizeof(T))) fail("misaligned atomic access", 0);
    for (int i = 0; i < N; ++i) atomicAdd(static_cast<T*>(address) + i, values[i]);
}
}

#define TILEWRIGHT_VECTOR_ATOMIC(name)                                                                             \
    inline void name(float2* address, float2 value) { tilewright::add_elements<2>(address, &value.x); }            \
    inline void name(float4* address, float4 value) { tilewright::add_elements<4>(address, &value.x); }
TILEWRIGHT_VECTOR_ATOMIC(atomicAdd)
TILEWRIGHT_VECTOR_ATOMIC(atomicAdd_block)
TILEWRIGHT_VECTOR_ATOMIC(atomicAdd_system)

// ----------------------------------------------------------------------------------------------- loads with hints

template <typename T> T __ldca(const T* address) { return *address; }
template <typename T> T __ldcg(const T* address) { return *address; }
template <typename T> T __ldcs(const T* address) { return *address; }
template <typename T> T __ldcv(const T* address) { return *address; }
template <typename T> void __stwb(T* address, T value) { *address = value; }
template <typename T> void __stcg(T* address, T value) { *address = value; }
template <typename T> void __stcs(T* address, T value) { *address = value; }
template <typename T> void __stwt(T* address, T value) { *address = value; }

// ------------------------------------------------------------------------------------------------------- bit casts

namespace tilewright {
template <typename To, typename From> To bits(From value)
{
    static_assert(sizeof(To) == sizeof(From));
    To result;
    memcpy(&result, &value, sizeof(To));
    return result;
}
}
inline float __int_as_float(int x) { return tilewright::bits<float>(x); }
inline int __float_as_int(float x) { return tilewright::bits<int>(x); }
inline float __uint_as_float(unsigned x) { return tilewright::bits<float>(x); }
inline unsigned __float_as_uint(float x) { return tilewright::bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return tilewright::bits<double>(x); }
inline long long __double_as_longlong(double x) { return tilewright::bits<long long>(x); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline double __hiloint2double(int high, int low)
{
    return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

// ------------------------------------------------------------------------------------------------ integer functions

#define TILEWRIGHT_MINMAX(T)                                       \
    inline T min(T x, T y) { return y < x ? y : x; }               \
    inline T max(T x, T y) { return x < y ? y : x; }
TILEWRIGHT_MINMAX(int)
TILEWRIGHT_MINMAX(unsigned)
TILEWRIGHT_MINMAX(long long)
TILEWRIGHT_MINMAX(unsigned long long)
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x)
{
    unsigned result = 0;
    for (int bit = 0; bit < 32; ++bit) result |= (x >> bit & 1u) << (31 - bit);
    return result;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return unsigned(((unsigned long long)high << 32 | low) >> (shift & 31));
}
inline unsigned long long __brevll(unsigned long long x)
{
    return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}
inline int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)x * y >> 32); }
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline int __mul24(int x, int y) { return int((unsigned)(x << 8 >> 8) * (unsigned)(y << 8 >> 8)); }
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
inline int __hadd(int x, int y) { return int(((long long)x + y) >> 1); }
inline unsigned __uhadd(unsigned x, unsigned y) { return unsigned(((unsigned long long)x + y) >> 1); }
inline int __rhadd(int x, int y) { return int(((long long)x + y + 1) >> 1); }
inline unsigned __urhadd(unsigned x, unsigned y) { return unsigned(((unsigned long long)x + y + 1) >> 1); }
inline unsigned __sad(int x, int y, unsigned z) { return unsigned(x < y ? (long long)y - x : (long long)x - y) + z; }
inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x < y ? y - x : x - y) + z; }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const unsigned long long source = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (int byte = 0; byte < 4; ++byte) result |= unsigned(source >> 8 * (selector >> 4 * byte & 7) & 0xff) << 8 * byte;
    return result;
}
