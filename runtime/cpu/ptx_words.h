// What the helpers do that the generated text writes in PTX, for the host compiler. The build takes such a helper's
// definition out of the text; the function of the same name and parameters takes its place. Of mma and wgmma, whose
// names do not tell their types, it keeps the declaration, and a call of tilewright::mma or wgmma becomes the body.
#pragma once
#include "floats.h"
#include "barrier_words.h"
#include "copy_words.h"
#include "map_words.h"
#include "matrix_words.h"
#include "wgmma_words.h"
#include "grid.h"

inline float divide(float x, float y) { return x / y; }
inline float square_root(float x) { return sqrtf(x); }
inline float power_of_two(float x) { return x < -126.0f ? 0.0f : exp2f(x); }
inline unsigned shared_address(const void* pointer) { return unsigned(reinterpret_cast<uintptr_t>(pointer)); }
template <int N, typename T> void forget(T (&)[N]) {}
template <typename T, typename Other> T load_if(const T* source, bool inside, Other other)
{
    return inside ? *source : T(other);
}
template <typename T, typename Value> void store_if(T* target, Value value, bool inside)
{
    if (inside) *target = T(value);
}
template <typename T, typename Value> void store_if_cg(T* target, Value value, bool inside)
{
    store_if(target, value, inside);
}
template <typename T, typename Value> void store_if_cs(T* target, Value value, bool inside)
{
    store_if(target, value, inside);
}
template <typename T, typename Value> void store_if_wt(T* target, Value value, bool inside)
{
    store_if(target, value, inside);
}
template <typename T, typename Value> void store_if_evict_first(T* target, Value value, bool inside)
{
    store_if(target, value, inside);
}
template <typename Packet> Packet load_packet_kept(const Packet* source) { return *source; }
template <typename Packet> void load_packet_if_kept(Packet& packet, const Packet* source, bool inside)
{
    if (inside) packet = *source;
}
template <typename Packet> void load_packet_if_cg(Packet& packet, const Packet* source, bool inside)
{
    if (inside) packet = *source;
}
template <typename Packet> void load_packet_if_cs(Packet& packet, const Packet* source, bool inside)
{
    if (inside) packet = *source;
}
template <typename Packet> void load_packet_if_cv(Packet& packet, const Packet* source, bool inside)
{
    if (inside) packet = *source;
}

// No vector is added as a whole: each of its elements is, wherever others may look in between.
template <int N, typename T> void atomic_add_vec(T* target, const T* source)
{
    tilewright::add_elements<N>(target, source);
}
template <int N, typename T> void atomic_add_vec_block(T* target, const T* source)
{
    tilewright::add_elements<N>(target, source);
}
template <int N, typename T> void atomic_add_vec_system(T* target, const T* source)
{
    tilewright::add_elements<N>(target, source);
}

inline unsigned in_register(unsigned number) { return number; }

// Ten bits of the mantissa are kept, ties away from zero; what is no number stays none.
inline unsigned round_tf32(float x)
{
    const unsigned bits = tilewright::bits<unsigned>(x);
    return x != x ? 0x7fffffffu : (bits + ((bits & 0x7f800000u) != 0x7f800000u ? 0x1000u : 0u)) & ~0x1fffu;
}
inline unsigned pack_bf16(float first, float second)
{
    const auto rounded = [](float x) {
        const unsigned bits = tilewright::bits<unsigned>(x);
        return x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    };
    return rounded(first) | rounded(second) << 16;
}
