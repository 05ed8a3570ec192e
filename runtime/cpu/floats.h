// half, bf16 and fp8 for the host compiler, under the names of cuda_fp16.h, cuda_bf16.h and cuda_fp8.h.
//
// A value is its bits. Arithmetic is done in float and rounded to nearest even, which for + - * / of these widths is the
// correctly rounded result.
#pragma once
#include "math_words.h"

namespace tilewright {

// Rounds a float to a format of EXPONENT and MANTISSA bits; `to_zero` cuts instead of rounding to nearest even.
template <int EXPONENT, int MANTISSA>
inline unsigned narrow(double value, bool to_zero)
{
    constexpr int bias = (1 << (EXPONENT - 1)) - 1, top = (1 << EXPONENT) - 1;
    const unsigned sign = signbit(value) ? 1u << (EXPONENT + MANTISSA) : 0u;
    const double magnitude = fabs(value);
    if (value != value) return (unsigned)top << MANTISSA | 1u << (MANTISSA - 1);
    if (magnitude == HUGE_VAL) return sign | (unsigned)top << MANTISSA;
    if (magnitude == 0.0) return sign;
    int exponent;
    frexp(magnitude, &exponent);
    exponent = max(exponent - 1, 1 - bias);                       // of the result's last place, subnormals included
    const double units = ldexp(magnitude, MANTISSA - exponent);   // in units of the last place, exact
    double whole = to_zero ? floor(units) : nearbyint(units);
    if (whole >= ldexp(1.0, MANTISSA + 1)) whole /= 2, ++exponent;
    if (exponent > bias) return sign | (to_zero ? ((unsigned)top << MANTISSA) - 1 : (unsigned)top << MANTISSA);
    const unsigned mantissa = unsigned(whole);
    const bool subnormal = mantissa < 1u << MANTISSA;
    const unsigned biased = subnormal ? 0u : unsigned(exponent + bias);
    return sign | biased << MANTISSA | (mantissa & ((1u << MANTISSA) - 1));
}

template <int EXPONENT, int MANTISSA>
inline float widen(unsigned bits)
{
    constexpr int bias = (1 << (EXPONENT - 1)) - 1, top = (1 << EXPONENT) - 1;
    const int exponent = bits >> MANTISSA & top;
    const int mantissa = bits & ((1 << MANTISSA) - 1);
    const float sign = bits >> (EXPONENT + MANTISSA) & 1 ? -1.0f : 1.0f;
    if (exponent == top) return mantissa ? NAN : sign * HUGE_VALF;
    if (exponent == 0) return sign * ldexpf(float(mantissa), 1 - bias - MANTISSA);
    return sign * ldexpf(float(mantissa + (1 << MANTISSA)), exponent - bias - MANTISSA);
}

template <int EXPONENT, int MANTISSA>
struct Float16 {
    uint16_t bits;
    Float16() = default;
    Float16(float value) : bits(uint16_t(narrow<EXPONENT, MANTISSA>(value, false))) {}
    Float16(double value) : bits(uint16_t(narrow<EXPONENT, MANTISSA>(value, false))) {}
    Float16(int value) : Float16(double(value)) {}
    operator float() const { return widen<EXPONENT, MANTISSA>(bits); }
    static Float16 from_bits(unsigned bits) { Float16 result; result.bits = uint16_t(bits); return result; }
    Float16 operator-() const { return from_bits(bits ^ 0x8000u); }
    Float16& operator+=(Float16 other) { return *this = *this + other; }
    Float16& operator-=(Float16 other) { return *this = *this - other; }
    Float16& operator*=(Float16 other) { return *this = *this * other; }
    friend Float16 operator+(Float16 x, Float16 y) { return Float16(float(x) + float(y)); }
    friend Float16 operator-(Float16 x, Float16 y) { return Float16(float(x) - float(y)); }
    friend Float16 operator*(Float16 x, Float16 y) { return Float16(float(x) * float(y)); }
    friend Float16 operator/(Float16 x, Float16 y) { return Float16(float(x) / float(y)); }
    friend bool operator==(Float16 x, Float16 y) { return float(x) == float(y); }
    friend bool operator!=(Float16 x, Float16 y) { return float(x) != float(y); }
    friend bool operator<(Float16 x, Float16 y) { return float(x) < float(y); }
    friend bool operator>(Float16 x, Float16 y) { return float(x) > float(y); }
    friend bool operator<=(Float16 x, Float16 y) { return float(x) <= float(y); }
    friend bool operator>=(Float16 x, Float16 y) { return float(x) >= float(y); }
    friend Float16 __hmax(Float16 x, Float16 y) { return x != x || y > x ? y : x; }
    friend Float16 __hmin(Float16 x, Float16 y) { return x != x || y < x ? y : x; }
    friend Float16 __hmax_nan(Float16 x, Float16 y) { return x != x ? x : y != y || y > x ? y : x; }
    friend Float16 __hmin_nan(Float16 x, Float16 y) { return x != x ? x : y != y || y < x ? y : x; }
    friend Float16 __habs(Float16 x) { return from_bits(x.bits & 0x7fffu); }
    friend Float16 __hfma(Float16 x, Float16 y, Float16 z) { return Float16(double(float(x)) * float(y) + float(z)); }
};

// A double that rounds to fewer digits as the integer would: what 53 bits cannot hold becomes one odd bit.
template <class Integer>
double odd_double(Integer x) {
    const Integer low = x & 0x7ff;
    const bool fits = double(x) < 0x1p53 && double(x) > -0x1p53;
    return fits ? double(x) : double((x - low) | (Integer(low != 0) << 11));
}

}  // namespace tilewright

using __half = tilewright::Float16<5, 10>;
using half = __half;
using __nv_bfloat16 = tilewright::Float16<8, 7>;

namespace tilewright {

// Two 16-bit floats in a register: each operation is that of its elements.
template <class Float>
struct alignas(4) Float16Pair {
    Float x, y;
    friend Float16Pair operator+(Float16Pair a, Float16Pair b) { return {a.x + b.x, a.y + b.y}; }
    friend Float16Pair operator-(Float16Pair a, Float16Pair b) { return {a.x - b.x, a.y - b.y}; }
    friend Float16Pair operator*(Float16Pair a, Float16Pair b) { return {a.x * b.x, a.y * b.y}; }
    friend Float16Pair __hfma2(Float16Pair a, Float16Pair b, Float16Pair c) {
        return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
    }
};

}  // namespace tilewright

using half2 = tilewright::Float16Pair<half>;
using __nv_bfloat162 = tilewright::Float16Pair<__nv_bfloat16>;

inline half2 __halves2half2(half x, half y) { return {x, y}; }
inline half2 __half2half2(half x) { return {x, x}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
inline half __float2half(float x) { return half(x); }
inline half __float2half_rn(float x) { return half(x); }
inline half __float2half_rz(float x) { return half::from_bits(tilewright::narrow<5, 10>(x, true)); }
inline half __double2half(double x) { return half(x); }
inline half __int2half_rn(int x) { return half(double(x)); }
inline half __uint2half_rn(unsigned x) { return half(double(x)); }
inline half __ll2half_rn(long long x) { return half(tilewright::odd_double(x)); }
inline half __ull2half_rn(unsigned long long x) { return half(tilewright::odd_double(x)); }
inline float __half2float(half x) { return float(x); }
inline short __half_as_short(half x) { return short(x.bits); }
inline unsigned short __half_as_ushort(half x) { return x.bits; }
inline half __short_as_half(short x) { return half::from_bits(uint16_t(x)); }
inline half __ushort_as_half(unsigned short x) { return half::from_bits(x); }
inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rz(float x) { return __nv_bfloat16::from_bits(tilewright::narrow<8, 7>(x, true)); }
inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __int2bfloat16_rn(int x) { return __nv_bfloat16(double(x)); }
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned x) { return __nv_bfloat16(double(x)); }
inline __nv_bfloat16 __ll2bfloat16_rn(long long x) { return __nv_bfloat16(tilewright::odd_double(x)); }
inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long x) { return __nv_bfloat16(tilewright::odd_double(x)); }
inline float __bfloat162float(__nv_bfloat16 x) { return float(x); }
inline short __bfloat16_as_short(__nv_bfloat16 x) { return short(x.bits); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __short_as_bfloat16(short x) { return __nv_bfloat16::from_bits(uint16_t(x)); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __nv_bfloat16::from_bits(x); }

inline half2 __floats2half2_rn(float x, float y) { return {half(x), half(y)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }

// 8-bit floats convert with saturation to the largest finite number; NaN stays NaN. e4m3 has no infinity.
struct __nv_fp8_e4m3 {
    unsigned char __x;
    __nv_fp8_e4m3() = default;
    explicit __nv_fp8_e4m3(float value)
    {
        const unsigned sign = signbit(value) ? 0x80u : 0u;
        if (value != value) __x = (unsigned char)(0x7fu);
        else if (fabsf(value) >= 448.0f) __x = (unsigned char)(sign | 0x7eu);
        else {
            const unsigned wide = tilewright::narrow<5, 3>(double(fabsf(value)) * 0.00390625, false);   // bias 15 as bias 7
            __x = (unsigned char)(sign | wide);
        }
    }
    explicit __nv_fp8_e4m3(half value) : __nv_fp8_e4m3(float(value)) {}
    explicit operator float() const
    {
        const unsigned exponent = __x >> 3 & 15, mantissa = __x & 7;
        const float sign = __x & 0x80 ? -1.0f : 1.0f;
        if (exponent == 15 && mantissa == 7) return NAN;
        return exponent ? sign * ldexpf(float(mantissa + 8), int(exponent) - 10) : sign * ldexpf(float(mantissa), -9);
    }
};
struct __nv_fp8_e5m2 {
    unsigned char __x;
    __nv_fp8_e5m2() = default;
    explicit __nv_fp8_e5m2(float value)
    {
        const unsigned sign = signbit(value) ? 0x80u : 0u;
        if (value != value) __x = 0x7fu;
        else if (fabsf(value) >= 57344.0f) __x = (unsigned char)(sign | 0x7bu);
        else __x = (unsigned char)tilewright::narrow<5, 2>(value, false);
    }
    explicit __nv_fp8_e5m2(half value) : __nv_fp8_e5m2(float(value)) {}
    explicit operator float() const { return tilewright::widen<5, 2>(__x); }
};

template <typename Narrow> struct TwoFp8 {   // the first in the low byte
    unsigned short __x;
    explicit operator half2() const
    {
        Narrow first, second;
        first.__x = (unsigned char)(__x & 0xff);
        second.__x = (unsigned char)(__x >> 8);
        return {half(float(first)), half(float(second))};
    }
};
using __nv_fp8x2_e4m3 = TwoFp8<__nv_fp8_e4m3>;
using __nv_fp8x2_e5m2 = TwoFp8<__nv_fp8_e5m2>;
