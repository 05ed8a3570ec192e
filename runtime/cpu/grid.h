// Runs the blocks of a grid, one after the other.
#pragma once
#include "asynchronous.h"
#include "division.h"
#include "faults.h"

namespace tilewright {

TILEWRIGHT_UNCHECKED inline void fiber_main()
{
#if TILEWRIGHT_ASAN
    const void* bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
    if (!engine.main_stack) engine.main_stack = bottom, engine.main_stack_bytes = bytes;
#endif
    engine.entry(engine.argument);
    Fiber& fiber = engine.fibers[engine.current];
    fiber.done = true;
    fiber.runnable = false;
    engine.warps[engine.current / LANES].exited |= 1u << engine.current % LANES;
    thread_returns();
    --engine.alive;
    if (engine.alive && engine.barriers[0].arrived == engine.alive)
        fail("divergent barrier: a thread returned while the others wait", fiber.line);
    if (!engine.alive) block_ends();
    const int next = engine.alive ? next_fiber() : MAIN;
    if (engine.alive && next == MAIN) fail("deadlock: every thread that is left waits", fiber.line);
    switch_to(next);
    __builtin_unreachable();
}

TILEWRIGHT_UNCHECKED inline void prepare(Fiber& fiber, char* top)
{
    fiber.done = false;
    fiber.runnable = true;
    fiber.waits_at = nullptr;
    fiber.waits_for = nullptr;
    fiber.line = fiber.parity = 0;
    fiber.fake_stack = nullptr;
#if TILEWRIGHT_ASAN
    __asan_unpoison_memory_region(top - STACK_BYTES, STACK_BYTES);
#endif
#if defined(__x86_64__)
    void** stack = reinterpret_cast<void**>(top);
    *--stack = nullptr;   // keeps the stack aligned as after a call
    *--stack = reinterpret_cast<void*>(fiber_main);
    for (int saved = 0; saved < 6; ++saved) *--stack = nullptr;
    fiber.stack_pointer = stack;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = top - STACK_BYTES;
    fiber.context.uc_stack.ss_size = STACK_BYTES;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
#endif
}

// Calls `work` as every thread and every thread's second self.
template <typename Work> TILEWRIGHT_UNCHECKED void each_self(Work work)
{
#if TILEWRIGHT_TSAN
    for (int thread = 0; thread < engine.num_threads; ++thread) {
        __tsan_switch_to_fiber(engine.fibers[thread].tsan, 1);
        work();
        if (engine.proxies) __tsan_switch_to_fiber(engine.fibers[thread].tsan_proxy, 1), work();
        __tsan_switch_to_fiber(engine.main_tsan, 1);
    }
#else
    (void)work;
#endif
}

TILEWRIGHT_UNCHECKED inline void run_block(int num_threads)
{
    engine.num_threads = engine.alive = num_threads;
    ++engine.blocks_started;
    memset(engine.barriers, 0, sizeof engine.barriers);
    memset(engine.warps, 0, sizeof engine.warps);
    memset(engine.shared, 0xff, engine.shared_bytes);   // NaN in every format: what was never written shows
    block_begins();
    for (int thread = 0; thread < num_threads; ++thread)
        prepare(engine.fibers[thread], engine.stacks + size_t(thread + 1) * STACK_BYTES);
    release(engine.block_token);   // blocks run one after the other: what one wrote, the next may read
    each_self([]() TILEWRIGHT_UNCHECKED { acquire(engine.block_token); });
    engine.current = MAIN;
    switch_to(engine.schedule == REVERSE || engine.schedule == GREEDY_HIGH ? num_threads - 1 : 0);
    if (engine.failed) return;
    each_self([]() TILEWRIGHT_UNCHECKED { release(engine.block_token); });
    acquire(engine.block_token);
}

// A parameter that is passed by value and lies at `address`.
template <typename T> T loaded(unsigned long long address)
{
    T value;
    memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
    return value;
}

// Memory for the stacks of all threads that a block may have, whose ends nobody may touch; null where there is no room.
TILEWRIGHT_UNCHECKED inline char* make_stacks()
{
    const size_t bytes = size_t(MAX_THREADS) * STACK_BYTES;
    void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    for (int thread = 0; thread < MAX_THREADS; ++thread)
        if (mprotect(static_cast<char*>(made) + size_t(thread) * STACK_BYTES, GUARD_BYTES, PROT_NONE))
            return munmap(made, bytes), nullptr;
    return static_cast<char*>(made);
}

// How a grid is run.
struct Launch {
    dim3 grid;
    unsigned schedule, seed, delivery;
};

// Runs all blocks; returns null, or what went wrong.
TILEWRIGHT_UNCHECKED inline const char* run_grid(
    const Launch& launch, int num_threads, void (*entry)(void*), void* argument)
{
    const dim3 grid = launch.grid;
    if (!engine.stacks && !(engine.stacks = make_stacks()))
        return "there is no memory for the stacks of the threads of a block\n";
#if TILEWRIGHT_TSAN
    engine.main_tsan = __tsan_get_current_fiber();
    for (int thread = 0; thread < num_threads; ++thread) {
        Fiber& fiber = engine.fibers[thread];
        char name[32];
        snprintf(name, sizeof name, "CUDA thread %d", thread);
        if (!fiber.tsan) __tsan_set_fiber_name(fiber.tsan = __tsan_create_fiber(1), name);
        if (engine.proxies && !fiber.tsan_proxy) fiber.tsan_proxy = __tsan_create_fiber(1);
    }
#endif
    const SignalGuard guard;
    engine.failed = false;
    engine.schedule = launch.schedule;
    engine.seed = launch.seed;
    engine.delivery = launch.delivery;
    engine.entry = entry;
    engine.argument = argument;
    const Divisions divisions;
    gridDim = grid;
    blockDim = {unsigned(num_threads), 1, 1};
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = {x, y, z};
                run_block(num_threads);
                if (engine.failed) return fflush(stdout), engine.report;
            }
    fflush(stdout);
    return nullptr;
}

}  // namespace tilewright
