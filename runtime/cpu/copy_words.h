// cp.async, and copies of tensor boxes by TMA.
#pragma once
#include "barrier_words.h"

namespace tilewright {

// ----------------------------------------------------------------------------------------------------------- cp.async

template <int SIZE> struct CopyWork {
    unsigned char* target;
    const unsigned char* source;
    int bytes;

    void read() const {}
    TILEWRIGHT_UNCHECKED void operator()() const
    {
        for (int i = 0; i < SIZE; ++i) target[i] = i < bytes ? source[i] : 0;
        note_read(source, size_t(bytes));
        note_write(target, SIZE);
    }
};

template <int SIZE>
TILEWRIGHT_UNCHECKED __attribute__((noinline)) void start_copy(void* target, const void* source, int bytes, int line)
{
    if (bytes < 0 || bytes > SIZE) fail("a cp.async copies more bytes than it has", line);
    if (reinterpret_cast<uintptr_t>(target) % SIZE) fail("misaligned cp.async: the address in shared memory", line);
    if (bytes && reinterpret_cast<uintptr_t>(source) % SIZE) fail("misaligned cp.async: the address in global memory", line);
    touch(source, size_t(bytes));
    touch(target, SIZE);
    const CopyWork<SIZE> work{static_cast<unsigned char*>(target), static_cast<const unsigned char*>(source), bytes};
    const void* const site = __builtin_return_address(0);
    start_in_group(
        mine().copies, mine().copy_groups, make_operation(work, site, COPIES_OF_THREAD, engine.current, line));
}

// --------------------------------------------------------------------------------------------------------------- TMA

constexpr int MAX_RANK = 5;

// What the 128 bytes of a tensor map hold in the CPU run; the contiguous dimension is the first.
struct TensorMapLayout {
    uint64_t base;
    uint32_t rank, element_bytes, swizzle_bytes, box[MAX_RANK];
    uint64_t sizes[MAX_RANK], strides[MAX_RANK - 1];
};
static_assert(sizeof(TensorMapLayout) <= 128);

// Where a byte of a swizzled shared tile lies: the index of its 16-byte chunk is mixed with that of its 128-byte line.
TILEWRIGHT_UNCHECKED inline uintptr_t swizzled(uintptr_t address, unsigned swizzle_bytes)
{
    const unsigned chunks = swizzle_bytes / 16;
    return chunks ? address ^ (address >> 7 & (chunks - 1)) << 4 : address;
}

struct BoxCopy {
    TensorMapLayout map;
    const void* place;           // of the map
    unsigned char* shared;
    uint64_t* barrier;           // null for stores
    long long start[MAX_RANK];
    int line;

    TILEWRIGHT_UNCHECKED size_t row_bytes() const { return size_t(map.box[0]) * map.element_bytes; }
    TILEWRIGHT_UNCHECKED size_t rows() const
    {
        size_t count = 1;
        for (unsigned axis = 1; axis < map.rank; ++axis) count *= map.box[axis];
        return count;
    }

    // Calls `visit(row, first, last, memory)` for every row of the box: its elements in [first, last) are inside the tensor
    // and lie at `memory` on, which is where element 0 of the row would be.
    template <typename Visit> TILEWRIGHT_UNCHECKED void each_row(Visit visit) const
    {
        const size_t count = rows();
        for (size_t row = 0; row < count; ++row) {
            long long first = start[0] < 0 ? -start[0] : 0, last = (long long)map.sizes[0] - start[0];
            if (last > (long long)map.box[0]) last = map.box[0];
            uint64_t address = map.base + uint64_t(start[0]) * map.element_bytes;
            size_t rest = row;
            for (unsigned axis = 1; axis < map.rank; ++axis) {
                const long long index = start[axis] + (long long)(rest % map.box[axis]);
                rest /= map.box[axis];
                if (index < 0 || uint64_t(index) >= map.sizes[axis]) last = first;
                address += uint64_t(index) * map.strides[axis - 1];
            }
            if (last < first) last = first;
            visit(row, size_t(first), size_t(last), reinterpret_cast<unsigned char*>(address));
        }
    }

    // Calls `visit` for every 16 bytes of a row in shared memory, with the bytes from the row's start.
    template <typename Visit> TILEWRIGHT_UNCHECKED void each_chunk(size_t row, Visit visit) const
    {
        const uintptr_t address = reinterpret_cast<uintptr_t>(shared) + row * row_bytes();
        for (size_t offset = 0; offset < row_bytes(); offset += 16)
            visit(offset, reinterpret_cast<unsigned char*>(swizzled(address + offset, map.swizzle_bytes)));
    }

    TILEWRIGHT_UNCHECKED void load() const
    {
        const size_t element = map.element_bytes;
        each_row([&](size_t row, size_t first, size_t last, const unsigned char* memory) TILEWRIGHT_UNCHECKED {
            each_chunk(row, [&](size_t offset, unsigned char* chunk) TILEWRIGHT_UNCHECKED {
                if (offset >= first * element && offset + 16 <= last * element) {
                    __builtin_memcpy(chunk, memory + offset, 16);
                } else {
                    for (size_t byte = 0; byte < 16; ++byte) {
                        const size_t place = offset + byte;
                        chunk[byte] = place >= first * element && place < last * element ? memory[place] : 0;
                    }
                }
            });
            note_read(memory + first * element, (last - first) * element);
        });
        note_write(shared, rows() * row_bytes());
    }

    // As hardware does: 16 bytes of which some are inside the tensor are written as a whole.
    TILEWRIGHT_UNCHECKED void store() const
    {
        const size_t element = map.element_bytes;
        each_row([&](size_t row, size_t first, size_t last, unsigned char* memory) TILEWRIGHT_UNCHECKED {
            each_chunk(row, [&](size_t offset, const unsigned char* chunk) TILEWRIGHT_UNCHECKED {
                if (offset + 16 > first * element && offset < last * element) __builtin_memcpy(memory + offset, chunk, 16);
            });
            const size_t begin = first * element / 16 * 16, end = (last * element + 15) / 16 * 16;
            if (first < last) note_write(memory + begin, end - begin);
        });
    }

    // What the hardware or the encoding of the map would refuse.
    TILEWRIGHT_UNCHECKED void check(unsigned rank) const
    {
        if (map.rank != rank) fail("a TMA copy of another rank than its tensor map", line);
        if (map.base % 16) fail("misaligned TMA: the tensor does not start at an address divisible by 16", line);
        for (unsigned axis = 0; axis + 1 < rank; ++axis)
            if (map.strides[axis] % 16) fail("misaligned TMA: a stride of the tensor is not divisible by 16 bytes", line);
        for (unsigned axis = 0; axis < rank; ++axis)
            if (map.box[axis] < 1 || map.box[axis] > 256) fail("a TMA box has 1 to 256 elements along every axis", line);
        if (start[0] * (long long)map.element_bytes % 16) fail("misaligned TMA: a box does not start at a multiple of 16 bytes", line);
        if (row_bytes() % 16) fail("the rows of a TMA box are not a multiple of 16 bytes", line);
        if (map.swizzle_bytes && row_bytes() > map.swizzle_bytes) fail("the rows of a TMA box exceed its swizzle", line);
        if (reinterpret_cast<uintptr_t>(shared) % 128) fail("misaligned TMA: the shared tile needs 128 bytes", line);
        touch(shared, rows() * row_bytes());
        each_row([&](size_t, size_t first, size_t last, const unsigned char* memory) {
            touch(memory + first * map.element_bytes, (last - first) * map.element_bytes);
        });
    }
};

template <typename Map>
TILEWRIGHT_UNCHECKED BoxCopy box_copy(
    const Map& map, const void* shared, Barrier* barrier, const int* outer_first, unsigned rank, int line)
{
    BoxCopy copy{};
    __builtin_memcpy(&copy.map, &map, sizeof copy.map);
    copy.place = &map;
    copy.shared = static_cast<unsigned char*>(const_cast<void*>(shared));
    copy.barrier = reinterpret_cast<uint64_t*>(barrier);
    copy.line = line;
    for (unsigned axis = 0; axis < rank; ++axis) copy.start[axis] = outer_first[rank - 1 - axis];
    copy.check(rank);
    return copy;
}

struct LoadWork {
    BoxCopy copy;

    void read() const {}
    TILEWRIGHT_UNCHECKED void operator()() const
    {
        copy.load();
        release(copy.barrier);
        release(proxy_token(copy.barrier));   // the proxy's own write needs no fence
        complete_bytes(copy.barrier, long(copy.rows() * copy.row_bytes()), copy.line);
    }
};

struct StoreWork {
    BoxCopy copy;

    TILEWRIGHT_UNCHECKED void read() const { note_read(copy.shared, copy.rows() * copy.row_bytes()); }
    TILEWRIGHT_UNCHECKED void operator()() const { copy.store(); }
};

TILEWRIGHT_UNCHECKED inline void start_load(const BoxCopy& copy, const void* site)
{
    static unsigned turn;
    live_mbarrier(copy.barrier, copy.line);
    Operation* operation = make_operation(LoadWork{copy}, site, LOADS, int(turn++ % LOAD_SOURCES), copy.line);
    operation->completes = copy.barrier;
    operation->map = copy.place;
    start(loads_under_way, operation);
}

TILEWRIGHT_UNCHECKED inline void start_store(const BoxCopy& copy, const void* site)
{
    Operation* operation = make_operation(StoreWork{copy}, site, STORES_OF_THREAD, engine.current, copy.line);
    operation->map = copy.place;
    start_in_group(mine().stores, mine().store_groups, operation);
}

}  // namespace tilewright

#define TILEWRIGHT_CP_ASYNC(name, size)                                                                               \
    __forceinline__ void name(void* target, const void* source, int bytes, TILEWRIGHT_LINE)                           \
    { tilewright::start_copy<size>(target, source, bytes, line); }
TILEWRIGHT_CP_ASYNC(cp_async_4, 4)
TILEWRIGHT_CP_ASYNC(cp_async_8, 8)
TILEWRIGHT_CP_ASYNC(cp_async_16, 16)
TILEWRIGHT_CP_ASYNC(cp_async_4_evict_first, 4)
TILEWRIGHT_CP_ASYNC(cp_async_8_evict_first, 8)
TILEWRIGHT_CP_ASYNC(cp_async_16_evict_first, 16)
TILEWRIGHT_UNCHECKED inline void cp_async_commit() { tilewright::mine().copy_groups.commit(); }
template <int PENDING> TILEWRIGHT_UNCHECKED void cp_async_wait()
{
    static_assert(PENDING >= 0 && PENDING < tilewright::GROUPS);
    tilewright::wait_for_groups(tilewright::mine().copies, tilewright::mine().copy_groups, PENDING);
}

// A kernel's TensorMap is its own type; here it is 128 bytes.
#define TILEWRIGHT_TMA(load, store, rank, parameters, arguments)                                                      \
    template <typename Map> TILEWRIGHT_UNCHECKED __attribute__((noinline)) void load(                                 \
        void* target, const Map& map, parameters, Barrier* full, TILEWRIGHT_LINE)                                     \
    {                                                                                                                 \
        const int start[] = {arguments};                                                                              \
        tilewright::start_load(tilewright::box_copy(map, target, full, start, rank, line), __builtin_return_address(0)); \
    }                                                                                                                 \
    template <typename Map> TILEWRIGHT_UNCHECKED __attribute__((noinline)) void load(                                 \
        void* target, const Map& map, parameters, Barrier* full, unsigned long long, TILEWRIGHT_LINE)                 \
    {                                                                                                                 \
        const int start[] = {arguments};                                                                              \
        tilewright::start_load(tilewright::box_copy(map, target, full, start, rank, line), __builtin_return_address(0)); \
    }                                                                                                                 \
    template <typename Map> TILEWRIGHT_UNCHECKED __attribute__((noinline)) void store(                                \
        const Map& map, parameters, const void* source, TILEWRIGHT_LINE)                                              \
    {                                                                                                                 \
        const int start[] = {arguments};                                                                              \
        tilewright::start_store(tilewright::box_copy(map, source, nullptr, start, rank, line), __builtin_return_address(0)); \
        tilewright::mine().store_groups.commit();                                                                     \
    }
#define TILEWRIGHT_LIST(...) __VA_ARGS__
TILEWRIGHT_TMA(tma_load_1d, tma_store_1d, 1, int col, col)
TILEWRIGHT_TMA(tma_load_2d, tma_store_2d, 2, TILEWRIGHT_LIST(int row, int col), TILEWRIGHT_LIST(row, col))
TILEWRIGHT_TMA(tma_load_3d, tma_store_3d, 3, TILEWRIGHT_LIST(int plane, int row, int col), TILEWRIGHT_LIST(plane, row, col))
TILEWRIGHT_TMA(tma_load_4d, tma_store_4d, 4, TILEWRIGHT_LIST(int volume, int plane, int row, int col), TILEWRIGHT_LIST(volume, plane, row, col))
TILEWRIGHT_TMA(tma_load_5d, tma_store_5d, 5, TILEWRIGHT_LIST(int group, int volume, int plane, int row, int col),
               TILEWRIGHT_LIST(group, volume, plane, row, col))
inline unsigned long long l2_policy(bool) { return 0; }   // there is no L2 here
template <typename Map>
inline void tensor_map_prefetch(const Map&) {}   // here a tensor map is always near
template <int PENDING> TILEWRIGHT_UNCHECKED void tma_store_wait()
{
    static_assert(PENDING >= 0 && PENDING < tilewright::GROUPS);
    tilewright::wait_for_groups(tilewright::mine().stores, tilewright::mine().store_groups, PENDING);
}
// The run writes when it reads, so that both waits are one.
template <int PENDING> TILEWRIGHT_UNCHECKED void tma_store_complete() { tma_store_wait<PENDING>(); }
