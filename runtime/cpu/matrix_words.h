// ldmatrix, stmatrix and mma: what a warp does with fragments of matrices.
//
// A lane is number `group` of 8 and `member` of 4 in its group: lane = 4 * group + member. A register of a fragment holds
// one row's consecutive elements.
#pragma once
#include "asynchronous.h"
#include "floats.h"

namespace tilewright {

// ------------------------------------------------------------------------------------------------ element types of PTX

template <int EXPONENT, int MANTISSA> struct SmallFloat {
    using Bits = uint16_t;
    using Sum = float;
    TILEWRIGHT_UNCHECKED static float value(uint16_t bits)
    {
        // As a float, the bits are the value times a power of two, subnormals included.
        const uint32_t wide = uint32_t(bits & 0x7fffu) << (23 - MANTISSA), sign = uint32_t(bits & 0x8000u) << 16;
        if ((bits >> MANTISSA & ((1 << EXPONENT) - 1)) == (1 << EXPONENT) - 1)
            return tilewright::bits<float>(sign | 0x7f800000u | (wide & 0x7fffffu));
        constexpr float scale = EXPONENT == 5 ? 0x1p112f : 1.0f;
        return tilewright::bits<float>(sign | tilewright::bits<uint32_t>(tilewright::bits<float>(wide) * scale));
    }
};
using f16 = SmallFloat<5, 10>;
using bf16 = SmallFloat<8, 7>;
struct tf32 {
    using Bits = uint32_t;
    using Sum = float;
    TILEWRIGHT_UNCHECKED static float value(uint32_t bits) { return tilewright::bits<float>(bits & ~0x1fffu); }
};
template <typename Float> struct Fp8 {
    using Bits = uint8_t;
    using Sum = float;
    TILEWRIGHT_UNCHECKED static float value(uint8_t bits)
    {
        Float x;
        x.__x = bits;
        return float(x);
    }
};
using e4m3 = Fp8<__nv_fp8_e4m3>;
using e5m2 = Fp8<__nv_fp8_e5m2>;
template <typename Integer> struct Int8 {
    using Bits = uint8_t;
    using Sum = int;
    TILEWRIGHT_UNCHECKED static int value(uint8_t bits) { return Integer(bits); }
};
using s8 = Int8<int8_t>;
using u8 = Int8<uint8_t>;

// Sums of products: floats in their order, integers modulo 2^32.
TILEWRIGHT_UNCHECKED inline void accumulate(float& sum, float x, float y) { sum += x * y; }
TILEWRIGHT_UNCHECKED inline void accumulate(int& sum, int x, int y) { sum = int(unsigned(sum) + unsigned(x) * unsigned(y)); }
TILEWRIGHT_UNCHECKED inline float added(float x, float y) { return x + y; }
TILEWRIGHT_UNCHECKED inline int added(int x, int y) { return int(unsigned(x) + unsigned(y)); }

// Element `i` of a register.
template <typename Element> TILEWRIGHT_UNCHECKED typename Element::Sum element_of(unsigned held, int i)
{
    return Element::value(typename Element::Bits(held >> (8 * sizeof(typename Element::Bits) * i)));
}

// Puts a lane's registers of a 16-row fragment of A into rows of K elements.
template <typename Element, int K>
TILEWRIGHT_UNCHECKED void unpack_a(const unsigned* held, int lane, typename Element::Sum (*rows)[K])
{
    constexpr int EACH = 4 / sizeof(typename Element::Bits);
    for (int r = 0; r < 4; ++r)
        for (int i = 0; i < EACH; ++i)
            rows[lane / 4 + r % 2 * 8][r / 2 * 4 * EACH + lane % 4 * EACH + i] = element_of<Element>(held[r], i);
}

// -------------------------------------------------------------------------------------------------------------- mma

template <typename Sum> struct MmaCall { Sum *upper, *lower; const unsigned *a, *b; };

template <typename A, typename B, int K, typename Sum>
TILEWRIGHT_UNCHECKED void mma(Sum* upper, Sum* lower, const unsigned (&a)[4], const unsigned (&b)[2], int line)
{
    MmaCall<Sum> call{upper, lower, a, b};
    warp_operation(~0u, "mma", line, &call, [](void** calls, unsigned) TILEWRIGHT_UNCHECKED {
        constexpr int EACH = 4 / sizeof(typename B::Bits);
        Sum left[16][K], right[K][8];
        for (int lane = 0; lane < LANES; ++lane) {
            const auto* call = static_cast<const MmaCall<Sum>*>(calls[lane]);
            unpack_a<A, K>(call->a, lane, left);
            for (int r = 0; r < 2; ++r)
                for (int i = 0; i < EACH; ++i)
                    right[r * 4 * EACH + lane % 4 * EACH + i][lane / 4] = element_of<B>(call->b[r], i);
        }
        for (int row = 0; row < 16; ++row)
            for (int col = 0; col < 8; ++col) {
                Sum sum = 0;
                for (int k = 0; k < K; ++k) accumulate(sum, left[row][k], right[k][col]);
                auto* call = static_cast<MmaCall<Sum>*>(calls[row % 8 * 4 + col / 2]);
                Sum& place = (row < 8 ? call->upper : call->lower)[col % 2];
                place = added(place, sum);
            }
    });
}

struct DoubleCall { double *upper, *lower; const double *a, *b; };

// Doubles: register r of A holds row group + 8 * (r % 2) of 16, or row group of 8, and K member + 4 * (r / 2), or + 4 * r;
// register r of B column group and K member + 4 * r.
template <int ROWS, int K>
TILEWRIGHT_UNCHECKED void mma_double(double* upper, double* lower, const double* a, const double* b, int line)
{
    DoubleCall call{upper, lower, a, b};
    warp_operation(~0u, "mma", line, &call, [](void** calls, unsigned) TILEWRIGHT_UNCHECKED {
        constexpr int HALVES = ROWS / 8;
        double left[ROWS][K], right[K][8];
        for (int lane = 0; lane < LANES; ++lane) {
            const auto* call = static_cast<const DoubleCall*>(calls[lane]);
            for (int r = 0; r < HALVES * K / 4; ++r)
                left[lane / 4 + r % HALVES * 8][lane % 4 + r / HALVES * 4] = call->a[r];
            for (int r = 0; r < K / 4; ++r) right[lane % 4 + r * 4][lane / 4] = call->b[r];
        }
        for (int row = 0; row < ROWS; ++row)
            for (int col = 0; col < 8; ++col) {
                auto* call = static_cast<DoubleCall*>(calls[row % 8 * 4 + col / 2]);
                double& sum = (row < 8 ? call->upper : call->lower)[col % 2];
                for (int k = 0; k < K; ++k) sum = fma(left[row][k], right[k][col], sum);
            }
    });
}

// ------------------------------------------------------------------------------------------------ ldmatrix, stmatrix

struct MatrixCall { unsigned char* row; unsigned* registers; };

// Lane i's pointer is row i % 8 of matrix i / 8; a lane holds elements 2 * member and the next of row `group`, or, where
// the matrix is transposed, of column `group`.
template <int COUNT, bool TRANSPOSED, bool STORE>
TILEWRIGHT_UNCHECKED void move_matrices(unsigned* registers, const void* row, const void* site, int line)
{
    const char* const name = STORE ? "stmatrix" : "ldmatrix";
    const int lane = engine.current % LANES;
    if (lane < 8 * COUNT) {   // the other lanes' pointers are not used
        if (reinterpret_cast<uintptr_t>(row) % 16)
            fail(STORE ? "misaligned stmatrix: a row needs 16 bytes" : "misaligned ldmatrix: a row needs 16 bytes", line);
        touch(row, 16);
        if (STORE) note_write(row, 16, site);
        else note_read(row, 16, site);
    }
    MatrixCall call{static_cast<unsigned char*>(const_cast<void*>(row)), registers};
    warp_operation(~0u, name, line, &call, [](void** calls, unsigned) TILEWRIGHT_UNCHECKED {
        for (int lane = 0; lane < LANES; ++lane)
            for (int matrix = 0; matrix < COUNT; ++matrix)
                for (int half = 0; half < 2; ++half) {
                    const int group = lane / 4, pair = lane % 4 * 2 + half;
                    const int row = TRANSPOSED ? pair : group, col = TRANSPOSED ? group : pair;
                    unsigned char* place = static_cast<MatrixCall*>(calls[matrix * 8 + row])->row + col * 2;
                    unsigned& held = static_cast<MatrixCall*>(calls[lane])->registers[matrix];
                    uint16_t element = uint16_t(held >> 16 * half);
                    if (STORE) __builtin_memcpy(place, &element, 2);
                    else __builtin_memcpy(&element, place, 2);
                    if (!STORE) held = (held & 0xffffu << 16 * (1 - half)) | unsigned(element) << 16 * half;
                }
    });
}

}  // namespace tilewright

#define TILEWRIGHT_NOINLINE TILEWRIGHT_UNCHECKED __attribute__((noinline)) inline
#define TILEWRIGHT_MATRICES(load4, load2, store4, store2, transposed)                                                 \
    TILEWRIGHT_NOINLINE void load4(                                                                                   \
        unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, const void* row, TILEWRIGHT_LINE)                     \
    {                                                                                                                 \
        unsigned held[4] = {};                                                                                        \
        tilewright::move_matrices<4, transposed, false>(held, row, __builtin_return_address(0), line);                \
        r0 = held[0], r1 = held[1], r2 = held[2], r3 = held[3];                                                       \
    }                                                                                                                 \
    TILEWRIGHT_NOINLINE void load2(unsigned& r0, unsigned& r1, const void* row, TILEWRIGHT_LINE)                      \
    {                                                                                                                 \
        unsigned held[2] = {};                                                                                        \
        tilewright::move_matrices<2, transposed, false>(held, row, __builtin_return_address(0), line);                \
        r0 = held[0], r1 = held[1];                                                                                   \
    }                                                                                                                 \
    TILEWRIGHT_NOINLINE void store4(                                                                                  \
        void* row, unsigned r0, unsigned r1, unsigned r2, unsigned r3, TILEWRIGHT_LINE)                               \
    {                                                                                                                 \
        unsigned held[4] = {r0, r1, r2, r3};                                                                          \
        tilewright::move_matrices<4, transposed, true>(held, row, __builtin_return_address(0), line);                 \
    }                                                                                                                 \
    TILEWRIGHT_NOINLINE void store2(void* row, unsigned r0, unsigned r1, TILEWRIGHT_LINE)                             \
    {                                                                                                                 \
        unsigned held[2] = {r0, r1};                                                                                  \
        tilewright::move_matrices<2, transposed, true>(held, row, __builtin_return_address(0), line);                 \
    }
TILEWRIGHT_MATRICES(ldmatrix_x4, ldmatrix_x2, stmatrix_x4, stmatrix_x2, false)
TILEWRIGHT_MATRICES(ldmatrix_x4_trans, ldmatrix_x2_trans, stmatrix_x4_trans, stmatrix_x2_trans, true)
