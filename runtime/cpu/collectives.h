// What threads of a block do together: barriers, and operations of a warp or a warpgroup.
#pragma once
#include "engine.h"

namespace tilewright {

// Counts the current thread in at a barrier of `threads` threads; whether all have come.
TILEWRIGHT_UNCHECKED inline bool arrives(int id, int threads, int line)
{
    if (id < 0 || id >= NAMED_BARRIERS) fail("a block has barriers 0 to 15", line);
    if (threads <= 0 || (threads % LANES && threads != engine.num_threads))
        fail("a barrier takes a multiple of 32 threads", line);
    NamedBarrier& barrier = engine.barriers[id];
    release_both(&barrier);
    if (barrier.arrived == 0) {
        barrier.line = line;
        barrier.threads = threads;
    } else if (barrier.threads != threads) {
        fail("threads meet at one barrier with different numbers of threads", line);
    } else if (id == 0 && barrier.line != line) {
        fail("divergent barrier: threads of one block meet at different barriers", line);
    }
    if (++barrier.arrived < threads) return false;
    barrier.arrived = 0;
    wake(&barrier);
    return true;
}

// Waits until `threads` threads are at barrier `id`; id 0 with all threads is __syncthreads.
TILEWRIGHT_UNCHECKED inline void barrier(int id, int threads, const char* operation, int line)
{
    if (!arrives(id, threads, line)) {
        const NamedBarrier& barrier = engine.barriers[id];
        if (id == 0 && barrier.arrived == engine.alive)
            fail("divergent barrier: some threads have returned already", line);
        wait_at(operation, line, &barrier, [](const Fiber& fiber, char* text, size_t room) TILEWRIGHT_UNCHECKED {
            const auto* barrier = static_cast<const NamedBarrier*>(fiber.waits_for);
            snprintf(text, room, " (%d of %d threads are there)", barrier->arrived, barrier->threads);
        });
    }
    acquire_both(&engine.barriers[id]);
}

// Brings the lanes of `mask` together; the last one calls `work(values)` for all. `value` is the caller's own.
template <typename Work>
TILEWRIGHT_UNCHECKED __attribute__((noinline)) void warp_operation(
    unsigned mask, const char* operation, int line, void* value, Work work)
{
    const int lane = engine.current % LANES, first = engine.current - lane;
    Warp& warp = engine.warps[engine.current / LANES];
    if (!(mask >> lane & 1)) fail("a lane calls a warp operation whose mask leaves it out", line);
    if (mask & warp.exited) fail("a warp operation names a lane that has returned", line);
    warp.values[lane] = value;
    warp.operations[lane] = operation;
    warp.arrived |= 1u << lane;
    if ((warp.arrived & mask) != mask) {
        wait_at(operation, line);
        return;
    }
    for (int other = 0; other < LANES; ++other)
        if (mask >> other & 1 && strcmp(warp.operations[other], operation))
            fail("divergent warp: lanes meet at different warp operations", line);
    work(warp.values, mask);
    warp.arrived &= ~mask;
    for (int other = 0; other < LANES; ++other)
        if (mask >> other & 1) engine.fibers[first + other].runnable = true;
}

struct Meeting {
    unsigned long long block;   // in which block it takes place
    int arrived, line;
    void* values[WARPGROUP];
};

// Brings all threads of a warpgroup together; the last one calls `work(values)` for all. `value` is the caller's own.
template <typename Work>
TILEWRIGHT_UNCHECKED void warpgroup_operation(const char* operation, int line, void* value, Work work)
{
    static Meeting meetings[MAX_THREADS / WARPGROUP];
    const int first = engine.current / WARPGROUP * WARPGROUP;
    if (first + WARPGROUP > engine.num_threads) fail("a warpgroup operation outside a whole warpgroup", line);
    Meeting& meeting = meetings[engine.current / WARPGROUP];
    if (meeting.block != engine.blocks_started) meeting = Meeting{engine.blocks_started};
    if (meeting.arrived && meeting.line != line) fail("threads of a warpgroup meet at different operations", line);
    meeting.line = line;
    meeting.values[engine.current % WARPGROUP] = value;
    if (++meeting.arrived < WARPGROUP) {
        wait_at(operation, line, &meeting);
        return;
    }
    meeting.arrived = 0;
    work(meeting.values);
    wake(&meeting);
}

}  // namespace tilewright
