// CUDA's mathematical functions that the host's library lacks, and its fast and rounded variants.
#pragma once
#include <fenv.h>
#include "cuda_words.h"

inline float rsqrtf(float x) { return float(1.0 / sqrt(double(x))); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return float(1.0 / cbrt(double(x))); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return float(pow(10.0, x)); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
inline float sinpif(float x) { return float(sinpi(x)); }
inline float cospif(float x) { return float(cospi(x)); }
inline double erfcx(double x) { return exp(x * x) * erfc(x); }
inline float erfcxf(float x) { return float(erfcx(x)); }
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline float normcdff(float x) { return float(normcdf(x)); }
// Newton's method on erf from a rough start.
inline double erfinv(double y)
{
    if (!(y > -1.0 && y < 1.0)) return y == 1.0 ? HUGE_VAL : y == -1.0 ? -HUGE_VAL : NAN;
    const double logarithm = log((1.0 - y) * (1.0 + y)), a = 2.0 / (M_PI * 0.147) + 0.5 * logarithm;
    double x = copysign(sqrt(sqrt(a * a - logarithm / 0.147) - a), y);
    for (int step = 0; step < 4; ++step) x -= (erf(x) - y) / (2.0 / sqrt(M_PI) * exp(-x * x));
    return x;
}
inline float erfinvf(float y) { return float(erfinv(y)); }
inline double erfcinv(double y) { return erfinv(1.0 - y); }
inline float erfcinvf(float y) { return float(erfcinv(y)); }
inline double normcdfinv(double p) { return M_SQRT2 * erfinv(2.0 * p - 1.0); }
inline float normcdfinvf(float p) { return float(normcdfinv(p)); }
inline double cyl_bessel_i(int order, double x)
{
    const int steps = 400 + int(4 * fabs(x));
    double sum = 0.0;
    for (int step = 0; step < steps; ++step) {
        const double t = (step + 0.5) * M_PI / steps;
        sum += exp(x * cos(t)) * cos(order * t);
    }
    return sum / steps;
}
inline double cyl_bessel_i0(double x) { return cyl_bessel_i(0, x); }
inline double cyl_bessel_i1(double x) { return cyl_bessel_i(1, x); }
inline float cyl_bessel_i0f(float x) { return float(cyl_bessel_i(0, x)); }
inline float cyl_bessel_i1f(float x) { return float(cyl_bessel_i(1, x)); }
inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
inline float rhypotf(float x, float y) { return float(rhypot(x, y)); }
inline double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
inline double norm4d(double x, double y, double z, double w) { return sqrt(x * x + y * y + z * z + w * w); }
inline double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
inline double rnorm4d(double x, double y, double z, double w) { return 1.0 / norm4d(x, y, z, w); }
inline float norm3df(float x, float y, float z) { return float(norm3d(x, y, z)); }
inline float norm4df(float x, float y, float z, float w) { return float(norm4d(x, y, z, w)); }
inline float rnorm3df(float x, float y, float z) { return float(rnorm3d(x, y, z)); }
inline float rnorm4df(float x, float y, float z, float w) { return float(rnorm4d(x, y, z, w)); }

namespace tilewright {
// Computes with another rounding mode; volatile keeps the compiler from computing it beforehand.
template <int MODE, typename F> __attribute__((noinline)) auto rounded(F compute)
{
    const int before = fegetround();
    fesetround(MODE);
    volatile auto result = compute();
    fesetround(before);
    return result;
}
}
#define TILEWRIGHT_ROUNDED(suffix, mode)                                                                             \
    inline float __fadd_##suffix(float x, float y) { return tilewright::rounded<mode>([&] { volatile float a = x; return float(a + y); }); } \
    inline float __fsub_##suffix(float x, float y) { return tilewright::rounded<mode>([&] { volatile float a = x; return float(a - y); }); } \
    inline float __fmul_##suffix(float x, float y) { return tilewright::rounded<mode>([&] { volatile float a = x; return float(a * y); }); } \
    inline float __fdiv_##suffix(float x, float y) { return tilewright::rounded<mode>([&] { volatile float a = x; return float(a / y); }); } \
    inline float __frcp_##suffix(float x) { return tilewright::rounded<mode>([&] { volatile float a = 1.0f; return float(a / x); }); } \
    inline float __fsqrt_##suffix(float x) { return tilewright::rounded<mode>([&] { volatile float a = x; return sqrtf(a); }); } \
    inline float __fma_one_##suffix(float x, float y, float z) { return tilewright::rounded<mode>([&] { volatile float a = x; return fmaf(a, y, z); }); } \
    inline double __dadd_##suffix(double x, double y) { return tilewright::rounded<mode>([&] { volatile double a = x; return a + y; }); } \
    inline double __dsub_##suffix(double x, double y) { return tilewright::rounded<mode>([&] { volatile double a = x; return a - y; }); } \
    inline double __dmul_##suffix(double x, double y) { return tilewright::rounded<mode>([&] { volatile double a = x; return a * y; }); } \
    inline double __ddiv_##suffix(double x, double y) { return tilewright::rounded<mode>([&] { volatile double a = x; return a / y; }); } \
    inline double __drcp_##suffix(double x) { return tilewright::rounded<mode>([&] { volatile double a = 1.0; return a / x; }); } \
    inline double __dsqrt_##suffix(double x) { return tilewright::rounded<mode>([&] { volatile double a = x; return sqrt(a); }); } \
    inline double __fma_##suffix(double x, double y, double z) { return tilewright::rounded<mode>([&] { volatile double a = x; return fma(a, y, z); }); } \
    inline float __fmaf_##suffix(float x, float y, float z) { return __fma_one_##suffix(x, y, z); }                    \
    inline float __double2float_##suffix(double x) { return tilewright::rounded<mode>([&] { volatile double a = x; return float(a); }); } \
    inline float __int2float_##suffix(int x) { return tilewright::rounded<mode>([&] { volatile int a = x; return float(a); }); } \
    inline float __uint2float_##suffix(unsigned x) { return tilewright::rounded<mode>([&] { volatile unsigned a = x; return float(a); }); } \
    inline float __ll2float_##suffix(long long x) { return tilewright::rounded<mode>([&] { volatile long long a = x; return float(a); }); } \
    inline float __ull2float_##suffix(unsigned long long x) { return tilewright::rounded<mode>([&] { volatile unsigned long long a = x; return float(a); }); } \
    inline double __ll2double_##suffix(long long x) { return tilewright::rounded<mode>([&] { volatile long long a = x; return double(a); }); } \
    inline double __ull2double_##suffix(unsigned long long x) { return tilewright::rounded<mode>([&] { volatile unsigned long long a = x; return double(a); }); }
TILEWRIGHT_ROUNDED(rn, FE_TONEAREST)
TILEWRIGHT_ROUNDED(rz, FE_TOWARDZERO)
TILEWRIGHT_ROUNDED(rd, FE_DOWNWARD)
TILEWRIGHT_ROUNDED(ru, FE_UPWARD)
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

namespace tilewright {
// The hardware's conversion to an integer of 32 or 64 bits: what does not fit gives the nearest end. NaN gives 0 from a float to
// 32 bits, otherwise the highest bit alone.
template <typename T, typename Real> constexpr T saturated(Real x)
{
    constexpr T highest = T(T(1) << (sizeof(T) * 8 - 1)), low = T(-1) < T(0) ? highest : T(0);
    constexpr Real end = Real(1ull << (sizeof(T) * 8 - 1)) * (T(-1) < T(0) ? 1 : 2);
    if (!(x == x)) return sizeof(T) == 8 || sizeof(Real) == 8 ? highest : T(0);
    return x <= Real(low) ? low : x >= end ? T(~low) : T(x);
}

// By way of which integers the compilers for GPUs convert a float to others: fewer bits are the last ones of 32.
template <typename T> struct Through { static constexpr bool is_known = false; };
#define TILEWRIGHT_THROUGH(type, wide)                                                                                 \
    template <> struct Through<type> { static constexpr bool is_known = true; using Type = wide; };                    \
    template <> struct Through<unsigned type> { static constexpr bool is_known = true; using Type = unsigned wide; };
TILEWRIGHT_THROUGH(char, int)
TILEWRIGHT_THROUGH(short, int)
TILEWRIGHT_THROUGH(int, int)
TILEWRIGHT_THROUGH(long, long)
TILEWRIGHT_THROUGH(long long, long long)
template <> struct Through<signed char> : Through<char> {};

// What `static_cast` is in a kernel's text: C++ leaves open which integer a float is that none holds.
template <typename T, typename Real> constexpr __forceinline__ T converted_real(Real x)
{
    if constexpr (Through<T>::is_known) return static_cast<T>(saturated<typename Through<T>::Type>(x));
    else return static_cast<T>(x);
}
template <typename T> constexpr __forceinline__ T converted(float x) { return converted_real<T>(x); }
template <typename T> constexpr __forceinline__ T converted(double x) { return converted_real<T>(x); }
template <typename T, typename From> constexpr __forceinline__ T converted(From&& from) { return static_cast<T>(static_cast<From&&>(from)); }
}
#define TILEWRIGHT_TO_INTEGER(suffix, function)                                                                      \
    inline int __float2int_##suffix(float x) { return tilewright::saturated<int>(float(function(x))); }             \
    inline unsigned __float2uint_##suffix(float x) { return tilewright::saturated<unsigned>(float(function(x))); }  \
    inline long long __float2ll_##suffix(float x) { return tilewright::saturated<long long>(float(function(x))); }  \
    inline unsigned long long __float2ull_##suffix(float x) { return tilewright::saturated<unsigned long long>(float(function(x))); } \
    inline int __double2int_##suffix(double x) { return tilewright::saturated<int>(function(x)); }                   \
    inline unsigned __double2uint_##suffix(double x) { return tilewright::saturated<unsigned>(function(x)); }        \
    inline long long __double2ll_##suffix(double x) { return tilewright::saturated<long long>(function(x)); }        \
    inline unsigned long long __double2ull_##suffix(double x) { return tilewright::saturated<unsigned long long>(function(x)); }
TILEWRIGHT_TO_INTEGER(rn, rint)
TILEWRIGHT_TO_INTEGER(rz, trunc)
TILEWRIGHT_TO_INTEGER(rd, floor)
TILEWRIGHT_TO_INTEGER(ru, ceil)
