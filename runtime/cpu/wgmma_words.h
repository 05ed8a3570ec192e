// wgmma: a warpgroup multiplies shared tiles, through descriptors, into its registers.
//
// A descriptor of the CPU run has the address in 16-byte units in its low 44 bits, so that it can be moved as the
// hardware's can, and above them the number of a record of swizzle and strides.
#pragma once
#include "matrix_words.h"

namespace tilewright {

struct TileShape {
    int swizzle_bytes, leading_bytes, stride_bytes;
};
constexpr int ADDRESS_BITS = 44, MAX_SHAPES = 1024;
inline TileShape tile_shapes[MAX_SHAPES];
inline int num_tile_shapes;

TILEWRIGHT_UNCHECKED inline unsigned long long make_descriptor(const void* start, const TileShape& shape, int line)
{
    if (reinterpret_cast<uintptr_t>(start) % 16) fail("misaligned wgmma: a tile starts at 16 bytes", line);
    const int strides[] = {shape.leading_bytes, shape.stride_bytes};
    for (int bytes : strides)
        if (bytes < 0 || bytes % 16 || bytes >= 1 << 18)
            fail("a wgmma stride is a multiple of 16 bytes below 2^18", line);
    int number = 0;
    while (number < num_tile_shapes && __builtin_memcmp(&tile_shapes[number], &shape, sizeof shape)) ++number;
    if (number == MAX_SHAPES) fail("too many different wgmma tiles", line);
    if (number == num_tile_shapes) tile_shapes[num_tile_shapes++] = shape;
    return (unsigned long long)(number) << ADDRESS_BITS | reinterpret_cast<uintptr_t>(start) >> 4;
}

// The address of the byte `k_bytes` of row `row` of a tile whose rows lie along K.
TILEWRIGHT_UNCHECKED inline uintptr_t along_k(uintptr_t start, const TileShape& shape, int row, int k_bytes)
{
    const int width = shape.swizzle_bytes;
    uintptr_t address = start + uintptr_t(row / 8) * shape.stride_bytes;
    if (width) address += row % 8 * width + k_bytes;
    else address += k_bytes / 16 * uintptr_t(shape.leading_bytes) + row % 8 * 16 + k_bytes % 16;
    return swizzled(address, width);
}

// The same of a tile of 16-bit elements that lie along M or N: 16-byte chunks of 8 rows for each k.
TILEWRIGHT_UNCHECKED inline uintptr_t along_rows(uintptr_t start, const TileShape& shape, int row, int k)
{
    const int width = shape.swizzle_bytes, chunk = row / 8;
    uintptr_t address = start + row % 8 * 2;
    if (width) {
        address += chunk % (width / 16) * 16 + chunk / (width / 16) * uintptr_t(shape.leading_bytes);
        address += k % 8 * width + k / 8 * uintptr_t(shape.stride_bytes);
    } else {
        address += chunk * uintptr_t(shape.stride_bytes) + k % 8 * 16 + k / 8 * uintptr_t(shape.leading_bytes);
    }
    return swizzled(address, width);
}

// Reads `rows` rows of K elements, from row `first` on, through a descriptor.
template <typename Element, int K, bool TRANSPOSED>
TILEWRIGHT_UNCHECKED void read_tile(unsigned long long descriptor, int first, int rows, typename Element::Sum (*tile)[K])
{
    using Bits = typename Element::Bits;
    static_assert(!TRANSPOSED || sizeof(Bits) == 2, "wgmma transposes 16-bit elements only");
    const TileShape& shape = tile_shapes[descriptor >> ADDRESS_BITS];
    const uintptr_t start = uintptr_t(descriptor << (64 - ADDRESS_BITS) >> (64 - ADDRESS_BITS)) << 4;
    constexpr int EACH = 16 / sizeof(Bits);   // elements of a chunk
    Bits chunk[EACH];
    for (int outer = 0; outer < (TRANSPOSED ? K : rows); ++outer)
        for (int inner = 0; inner < (TRANSPOSED ? rows : K); inner += EACH) {
            const uintptr_t address = TRANSPOSED ? along_rows(start, shape, first + inner, outer)
                                                 : along_k(start, shape, first + outer, inner * int(sizeof(Bits)));
            const auto* place = reinterpret_cast<const unsigned char*>(address);
            touch(place, 16);
            note_read(place, 16);
            __builtin_memcpy(chunk, place, 16);
            for (int i = 0; i < EACH; ++i) {
                if (TRANSPOSED) tile[inner + i][outer] = Element::value(chunk[i]);
                else tile[outer][inner + i] = Element::value(chunk[i]);
            }
        }
}

template <typename Sum> struct WgmmaCall {
    Sum *upper, *lower;
    unsigned long long a, b;
    unsigned held[4];        // a in registers
};

// One warp's 16 rows of a wgmma; each warp reads for itself.
template <typename A, typename B, int N, int K, bool REGISTERS, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Sum>
struct WgmmaWork {
    int warp;
    WgmmaCall<Sum> lanes[LANES];

    inline static Sum left[16][K], right[N][K];   // from `read` to the multiplication that follows it

    TILEWRIGHT_UNCHECKED void read() const
    {
        if (REGISTERS)
            for (int lane = 0; lane < LANES; ++lane) unpack_a<A, K>(lanes[lane].held, lane, left);
        else read_tile<A, K, A_TRANSPOSED>(lanes[0].a, warp * 16, 16, left);
        read_tile<B, K, B_TRANSPOSED>(lanes[0].b, 0, N, right);
    }

    TILEWRIGHT_UNCHECKED void operator()() const
    {
        static Sum across[K][N], sums[N];
        for (int k = 0; k < K; ++k)
            for (int col = 0; col < N; ++col) across[k][col] = right[col][k];
        for (int row = 0; row < 16; ++row) {
            for (int col = 0; col < N; ++col) sums[col] = 0;
            for (int k = 0; k < K; ++k)
                for (int col = 0; col < N; ++col) accumulate(sums[col], left[row][k], across[k][col]);
            for (int col = 0; col < N; ++col) {
                const WgmmaCall<Sum>& call = lanes[row % 8 * 4 + col % 8 / 2];
                Sum& place = (row < 8 ? call.upper : call.lower)[col / 8 * 2 + col % 2];
                place = added(place, sums[col]);
            }
        }
        for (const WgmmaCall<Sum>& call : lanes) {
            note_write(call.upper, sizeof(Sum) * N / 4);
            note_write(call.lower, sizeof(Sum) * N / 4);
        }
    }
};

template <typename A, typename B, int N, int K, bool REGISTERS, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Sum>
TILEWRIGHT_UNCHECKED void start_wgmma(WgmmaCall<Sum> call, const void* site, int line)
{
    using Work = WgmmaWork<A, B, N, K, REGISTERS, A_TRANSPOSED, B_TRANSPOSED, Sum>;
    if (!mine().wgmma_fenced) fail("a wgmma without a wgmma_fence before it", line);
    struct Arrival { WgmmaCall<Sum>* call; const void* site; int line; char token[2]; } arrival{&call, site, line, {}};
    release_both(arrival.token);
    warpgroup_operation("wgmma", line, &arrival, [](void** values) TILEWRIGHT_UNCHECKED {
        const int first = engine.current / WARPGROUP * WARPGROUP;
        const auto* leader = static_cast<const Arrival*>(values[0]);
        Queue& queue = wgmmas_under_way[first / WARPGROUP];
        const bool now = queue.first == nullptr && at_once();   // accumulators are added to in order
        for (int warp = 0; warp < WARPGROUP / LANES; ++warp) {
            Work work;
            work.warp = warp;
            for (int lane = 0; lane < LANES; ++lane) {
                const auto* arrived = static_cast<const Arrival*>(values[warp * LANES + lane]);
                work.lanes[lane] = *arrived->call;
                if (arrived->call->b != leader->call->b || (!REGISTERS && arrived->call->a != leader->call->a))
                    fail("the descriptors of a wgmma differ between threads", leader->line);
            }
            const int number = first / LANES + warp;
            Operation* operation = make_operation(work, leader->site, WGMMA_OF_WARP, number, leader->line);
            for (int lane = 0; lane < LANES; ++lane) {
                const char* const token = static_cast<Arrival*>(values[warp * LANES + lane])->token;
                run_as(operation->tsan, leader->site, [&]() TILEWRIGHT_UNCHECKED { acquire(token); });
                run_as(operation->reader, leader->site, [&]() TILEWRIGHT_UNCHECKED { acquire(proxy_token(token)); });
            }
            Groups& groups = threads_under_way[first + warp * LANES].wgmma_groups;
            operation->number = groups.started;
            operation->group_token = groups.open_token();
            if (now) perform(operation);
            else queue.append(operation);
        }
        for (int thread = first; thread < first + WARPGROUP; ++thread) ++threads_under_way[thread].wgmma_groups.started;
    });

}

template <typename A, typename B, int N, int K, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Sum>
TILEWRIGHT_UNCHECKED __attribute__((noinline)) void wgmma(
    Sum* upper, Sum* lower, unsigned long long a, unsigned long long b, int line)
{
    const WgmmaCall<Sum> call{upper, lower, a, b, {}};
    start_wgmma<A, B, N, K, false, A_TRANSPOSED, B_TRANSPOSED>(call, __builtin_return_address(0), line);
}

template <typename A, typename B, int N, int K, bool A_TRANSPOSED, bool B_TRANSPOSED, typename Sum>
TILEWRIGHT_UNCHECKED __attribute__((noinline)) void wgmma(
    Sum* upper, Sum* lower, const unsigned (&a)[4], unsigned long long b, int line)
{
    const WgmmaCall<Sum> call{upper, lower, 0, b, {a[0], a[1], a[2], a[3]}};
    start_wgmma<A, B, N, K, true, false, B_TRANSPOSED>(call, __builtin_return_address(0), line);
}

}  // namespace tilewright

template <int SWIZZLE_BYTES>
TILEWRIGHT_UNCHECKED unsigned long long wgmma_descriptor(
    const void* start, int leading_bytes = 16, int stride_bytes = 8 * SWIZZLE_BYTES, TILEWRIGHT_LINE)
{
    static_assert(SWIZZLE_BYTES == 0 || SWIZZLE_BYTES == 32 || SWIZZLE_BYTES == 64 || SWIZZLE_BYTES == 128);
    return tilewright::make_descriptor(start, {SWIZZLE_BYTES, leading_bytes, stride_bytes}, line);
}

TILEWRIGHT_UNCHECKED inline void wgmma_fence() { tilewright::mine().wgmma_fenced = true; }
TILEWRIGHT_UNCHECKED inline void wgmma_commit() { tilewright::mine().wgmma_groups.commit(); }
template <int PENDING> TILEWRIGHT_UNCHECKED void wgmma_wait()
{
    using namespace tilewright;
    static_assert(PENDING >= 0 && PENDING < GROUPS);
    const int thread = engine.current;
    const Groups& groups = mine().wgmma_groups;
    perform_until(wgmmas_under_way[thread / WARPGROUP], groups.ended(PENDING));
    // The operations of a warp are its first lane's, so far as the race detector is concerned.
    const Groups& leader = threads_under_way[thread / LANES * LANES].wgmma_groups;
    for (unsigned group = groups.count > GROUPS ? groups.count - GROUPS : 0; group + PENDING < groups.count; ++group)
        acquire(&leader.tokens[group % GROUPS]);
}
