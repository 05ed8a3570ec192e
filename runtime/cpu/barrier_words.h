// mbarriers, named barriers and the register hand-over of warpgroups.
#pragma once
#include "asynchronous.h"
#include "cuda_words.h"

using Barrier = unsigned long long;

namespace tilewright {

// The 8 bytes of an mbarrier, as we lay them out; the hardware's are its own.
struct MbarrierState {
    uint64_t phase : 1, expected : 20, pending : 20;
    int64_t bytes : 21;      // announced and not yet arrived; negative while copies run ahead of their announcement
    uint64_t mark : 2;       // tells an initialised barrier
};
static_assert(sizeof(MbarrierState) == sizeof(Barrier));
constexpr unsigned MBARRIER_MARK = 2, MBARRIER_MAX = (1u << 20) - 1;

TILEWRIGHT_UNCHECKED inline MbarrierState mbarrier_state(const void* barrier)
{
    MbarrierState state;
    __builtin_memcpy(&state, barrier, sizeof state);
    return state;
}

TILEWRIGHT_UNCHECKED inline MbarrierState live_mbarrier(const void* barrier, int line)
{
    if (reinterpret_cast<uintptr_t>(barrier) % sizeof(Barrier)) fail("an mbarrier at an address not divisible by 8", line);
    const MbarrierState state = mbarrier_state(barrier);
    if (state.mark != MBARRIER_MARK) fail("an mbarrier is used before it is initialised", line);
    return state;
}

// Stores the state; where nothing is missing any more the phase ends and its waiters go on.
TILEWRIGHT_UNCHECKED inline void settle(void* barrier, MbarrierState state)
{
    const bool ended = state.pending == 0 && state.bytes == 0;
    if (ended) state.phase ^= 1, state.pending = state.expected;
    __builtin_memcpy(barrier, &state, sizeof state);
    if (ended) wake(barrier);
}

TILEWRIGHT_UNCHECKED inline void complete_bytes(uint64_t* barrier, long bytes, int line)
{
    MbarrierState state = live_mbarrier(barrier, line);
    if (bytes - long(state.bytes) > long(MBARRIER_MAX)) fail("an mbarrier counts at most 2^20 - 1 bytes", line);
    state.bytes -= bytes;
    settle(barrier, state);
}

TILEWRIGHT_UNCHECKED inline void arrive(Barrier* barrier, int bytes, const void* site, int line)
{
    MbarrierState state = live_mbarrier(barrier, line);
    note_read(barrier, sizeof *barrier, site);
    release_both(barrier);
    if (state.pending == 0) fail("more arrivals at an mbarrier than it was initialised for", line);
    if (bytes < 0 || bytes + long(state.bytes) > long(MBARRIER_MAX))
        fail("an mbarrier counts at most 2^20 - 1 bytes", line);
    state.bytes += bytes;
    --state.pending;
    settle(barrier, state);
}

}  // namespace tilewright

template <int COUNT>
TILEWRIGHT_UNCHECKED __attribute__((noinline)) void mbarrier_init(Barrier* barriers, int arrivals, TILEWRIGHT_LINE)
{
    if (reinterpret_cast<uintptr_t>(barriers) % sizeof(Barrier))
        tilewright::fail("an mbarrier at an address not divisible by 8", line);
    if (arrivals < 1 || unsigned(arrivals) > tilewright::MBARRIER_MAX)
        tilewright::fail("an mbarrier takes 1 to 2^20 - 1 arrivals", line);
    tilewright::touch(barriers, COUNT * sizeof *barriers);
    tilewright::note_write(barriers, COUNT * sizeof *barriers, __builtin_return_address(0));
    tilewright::MbarrierState state{};
    state.expected = state.pending = unsigned(arrivals);
    state.mark = tilewright::MBARRIER_MARK;
    for (int i = 0; i < COUNT; ++i) __builtin_memcpy(&barriers[i], &state, sizeof state);
}
inline void mbarrier_init_fence() {}
TILEWRIGHT_UNCHECKED __attribute__((noinline)) inline void mbarrier_arrive(Barrier* barrier, TILEWRIGHT_LINE)
{
    tilewright::arrive(barrier, 0, __builtin_return_address(0), line);
}
TILEWRIGHT_UNCHECKED __attribute__((noinline)) inline void mbarrier_arrive_expect(Barrier* barrier, int bytes, TILEWRIGHT_LINE)
{
    tilewright::arrive(barrier, bytes, __builtin_return_address(0), line);
}

TILEWRIGHT_UNCHECKED __attribute__((noinline)) inline void mbarrier_wait(Barrier* barrier, int parity, TILEWRIGHT_LINE)
{
    using namespace tilewright;
    if (parity != 0 && parity != 1) fail("the parity of an mbarrier's phase is 0 or 1", line);
    note_read(barrier, sizeof *barrier, __builtin_return_address(0));
    while (live_mbarrier(barrier, line).phase == unsigned(parity)) {
        engine.fibers[engine.current].parity = parity;
        wait_at("mbarrier_wait", line, barrier, [](const Fiber& fiber, char* text, size_t room) TILEWRIGHT_UNCHECKED {
            const MbarrierState state = mbarrier_state(fiber.waits_for);
            snprintf(text, room, " (for the end of the phase of parity %d, which lacks %d arrivals and %d bytes)",
                     fiber.parity, int(state.pending), int(state.bytes));
        });
    }
    acquire_both(barrier);
}

// ------------------------------------------------------------------------------------------ threads and registers

inline void named_barrier_sync(int id, int threads, TILEWRIGHT_LINE)
{
    tilewright::barrier(id, threads, "named_barrier_sync", line);
}

TILEWRIGHT_UNCHECKED inline void named_barrier_arrive(int id, int threads, TILEWRIGHT_LINE)
{
    tilewright::arrives(id, threads, line);
}

TILEWRIGHT_UNCHECKED inline void async_proxy_fence()
{
    const void* const self = &tilewright::mine();
    tilewright::release(self);
    tilewright::as_proxy([self]() TILEWRIGHT_UNCHECKED { tilewright::acquire(self); });
}

// Grids run one after another.
inline void grid_wait() {}
inline void grid_release_dependents() {}

template <int REGS> void warpgroup_shrink() { static_assert(REGS >= 24 && REGS <= 256 && REGS % 8 == 0); }
template <int REGS> void warpgroup_grow() { static_assert(REGS >= 24 && REGS <= 256 && REGS % 8 == 0); }
