// Runs a CUDA kernel on the CPU: one fiber per CUDA thread, one block after the other on the calling thread.
//
// A fiber runs until it must wait: at a barrier, or at a warp operation that other lanes have not reached. Whoever
// arrives last does the work for all, through pointers to the waiting fibers' own variables, and makes them runnable.
// Which runnable fiber is next is the schedule's choice; the greedy ones let a warp run as far ahead as barriers
// allow, which brings missing barriers to light. With ThreadSanitizer, fibers are announced as threads and barriers as
// synchronisation, so that races between CUDA threads are reported as what they are.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define TILEWRIGHT_TSAN 1
#define TILEWRIGHT_UNCHECKED __attribute__((no_sanitize("thread")))
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void*, unsigned);
void __tsan_set_fiber_name(void*, const char*);
void __tsan_acquire(void*);
void __tsan_release(void*);
}
#else
#define TILEWRIGHT_TSAN 0
#define TILEWRIGHT_UNCHECKED
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TILEWRIGHT_ASAN 1
extern "C" {
void __sanitizer_start_switch_fiber(void**, const void*, size_t);
void __sanitizer_finish_switch_fiber(void*, const void**, size_t*);
void __asan_unpoison_memory_region(const volatile void*, size_t);
void __asan_poison_memory_region(const volatile void*, size_t);
}
#else
#define TILEWRIGHT_ASAN 0
#endif

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace tilewright {

constexpr int MAX_THREADS = 1024;
constexpr int LANES = 32;
constexpr size_t STACK_BYTES = 256 * 1024;
constexpr size_t REPORT_BYTES = 4096;

enum Schedule { ROUND_ROBIN = 0, REVERSE = 1, GREEDY_LOW = 2, GREEDY_HIGH = 3, RANDOM = 4 };

struct Fiber {
#if defined(__x86_64__)
    void* stack_pointer;
#else
    ucontext_t context;
#endif
    void* tsan;
    void* fake_stack;
    const char* waits_at;   // the operation at which it waits, or null
    int line;               // of the generated text
    bool runnable, done;
};

struct Warp {
    unsigned arrived, exited;
    void* values[LANES];          // what each lane brings to a warp operation
    const char* operations[LANES];
};

struct Engine {
    int num_threads, current, alive, arrived_at_barrier;
    unsigned schedule, seed;
    Fiber fibers[MAX_THREADS];
    Warp warps[MAX_THREADS / LANES];
    char* stacks;
    void (*entry)(void*);
    void* argument;
    void* main_tsan;
    void* main_fake_stack;
    const void* main_stack;
    size_t main_stack_bytes;
    bool failed;
    char report[REPORT_BYTES];
    char barrier_token;           // what barriers synchronise on, for ThreadSanitizer
#if defined(__x86_64__)
    void* main_stack_pointer;
#else
    ucontext_t main_context;
#endif
};
inline Engine engine;

// ------------------------------------------------------------------------------------------------------ reports

constexpr int MAIN = -1;

inline void switch_to(int to);

// Writes down what is wrong and who waits where, and gives up the grid: the launch returns to its caller.
[[noreturn]] TILEWRIGHT_UNCHECKED inline void fail(const char* what, int line)
{
    char* text = engine.report;
    size_t room = sizeof engine.report;
    const auto add = [&](int written) { text += written, room -= size_t(written); };
    add(snprintf(text, room, "%s; line %d; block %u %u %u; thread %d\n", what, line, blockIdx.x, blockIdx.y, blockIdx.z,
                 engine.current));
    for (int first = 0; first < engine.num_threads && room > 200;) {
        const Fiber& fiber = engine.fibers[first];
        int last = first;
        while (last + 1 < engine.num_threads && engine.fibers[last + 1].waits_at == fiber.waits_at
               && engine.fibers[last + 1].line == fiber.line && engine.fibers[last + 1].done == fiber.done) ++last;
        if (fiber.done) add(snprintf(text, room, "threads %d-%d have returned\n", first, last));
        else if (fiber.waits_at)
            add(snprintf(text, room, "threads %d-%d wait at %s, line %d\n", first, last, fiber.waits_at, fiber.line));
        first = last + 1;
    }
    engine.failed = true;
    switch_to(MAIN);
    __builtin_unreachable();
}

// ----------------------------------------------------------------------------------------------------- switching

#if defined(__x86_64__)
// Saves the callee-saved registers and the stack of one fiber, restores those of another.
extern "C" void tilewright_switch(void** save, void* to);
asm(".text\n.weak tilewright_switch\n.type tilewright_switch,@function\ntilewright_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
    ".size tilewright_switch, .-tilewright_switch\n");
#endif

TILEWRIGHT_UNCHECKED inline void become(int thread)
{
    engine.current = thread;
    threadIdx = {unsigned(thread), 0, 0};
}

// Runs `to` (a fiber, or MAIN) until something switches back.
TILEWRIGHT_UNCHECKED inline void switch_to(int to)
{
    const int from = engine.current;
    if (to == from) return;
#if TILEWRIGHT_TSAN
    __tsan_switch_to_fiber(to == MAIN ? engine.main_tsan : engine.fibers[to].tsan, 1);
#endif
#if TILEWRIGHT_ASAN
    void** fake = from == MAIN ? &engine.main_fake_stack : engine.fibers[from].done ? nullptr : &engine.fibers[from].fake_stack;
    if (to == MAIN) __sanitizer_start_switch_fiber(fake, engine.main_stack, engine.main_stack_bytes);
    else __sanitizer_start_switch_fiber(fake, engine.stacks + size_t(to) * STACK_BYTES, STACK_BYTES);
#endif
    become(to);
#if defined(__x86_64__)
    void** save = from == MAIN ? &engine.main_stack_pointer : &engine.fibers[from].stack_pointer;
    tilewright_switch(save, to == MAIN ? engine.main_stack_pointer : engine.fibers[to].stack_pointer);
#else
    ucontext_t* save = from == MAIN ? &engine.main_context : &engine.fibers[from].context;
    swapcontext(save, to == MAIN ? &engine.main_context : &engine.fibers[to].context);
#endif
#if TILEWRIGHT_ASAN
    void* mine = from == MAIN ? engine.main_fake_stack : engine.fibers[from].fake_stack;
    __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
#endif
}

// The fiber that runs next, or MAIN when none can.
TILEWRIGHT_UNCHECKED inline int choose()
{
    const int count = engine.num_threads, current = engine.current < 0 ? 0 : engine.current;
    if (engine.schedule == GREEDY_LOW || engine.schedule == GREEDY_HIGH) {
        const int warp = current / LANES * LANES;
        for (int thread = warp; thread < warp + LANES && thread < count; ++thread)
            if (engine.fibers[thread].runnable) return thread;
    }
    int start = current + 1;
    if (engine.schedule == RANDOM) {
        engine.seed = engine.seed * 1664525u + 1013904223u;
        start = int((engine.seed >> 8) % unsigned(count));
    }
    const bool down = engine.schedule == REVERSE || engine.schedule == GREEDY_HIGH;
    for (int step = 0; step < count; ++step) {
        const int thread = down ? (current - 1 - step + 2 * count) % count : (start + step) % count;
        if (engine.fibers[thread].runnable) return thread;
    }
    return MAIN;
}

// The current fiber waits until somebody makes it runnable.
TILEWRIGHT_UNCHECKED inline void wait_at(const char* operation, int line)
{
    Fiber& fiber = engine.fibers[engine.current];
    fiber.waits_at = operation;
    fiber.line = line;
    fiber.runnable = false;
    const int next = choose();
    if (next == MAIN) fail("deadlock: every thread that is left waits", line);
    switch_to(next);
    fiber.waits_at = nullptr;
}

// --------------------------------------------------------------------------------------- barriers, warp operations

constexpr const char* BARRIER = "__syncthreads";

TILEWRIGHT_UNCHECKED inline void release_barrier()
{
    engine.arrived_at_barrier = 0;
    for (int thread = 0; thread < engine.num_threads; ++thread)
        if (engine.fibers[thread].waits_at == BARRIER) engine.fibers[thread].runnable = true;
}

TILEWRIGHT_UNCHECKED inline void barrier(int line)
{
    static int phase_line;
#if TILEWRIGHT_TSAN
    __tsan_release(&engine.barrier_token);
#endif
    if (engine.arrived_at_barrier == 0) phase_line = line;
    else if (phase_line != line) fail("divergent barrier: threads of one block meet at different barriers", line);
    if (++engine.arrived_at_barrier == engine.alive) {
        if (engine.alive != engine.num_threads) fail("divergent barrier: some threads have returned already", line);
        release_barrier();
    } else {
        wait_at(BARRIER, line);
    }
#if TILEWRIGHT_TSAN
    __tsan_acquire(&engine.barrier_token);
#endif
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

// -------------------------------------------------------------------------------------------------- blocks and grids

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
    --engine.alive;
    if (engine.alive && engine.arrived_at_barrier == engine.alive)
        fail("divergent barrier: a thread returned while the others wait", fiber.line);
    const int next = engine.alive ? choose() : MAIN;
    if (engine.alive && next == MAIN) fail("deadlock: every thread that is left waits", fiber.line);
    switch_to(next);
    __builtin_unreachable();
}

TILEWRIGHT_UNCHECKED inline void prepare(Fiber& fiber, char* top)
{
    fiber.done = false;
    fiber.runnable = true;
    fiber.waits_at = nullptr;
    fiber.line = 0;
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

TILEWRIGHT_UNCHECKED inline void run_block(int num_threads)
{
    engine.num_threads = engine.alive = num_threads;
    engine.arrived_at_barrier = 0;
    memset(engine.warps, 0, sizeof engine.warps);
    for (int thread = 0; thread < num_threads; ++thread)
        prepare(engine.fibers[thread], engine.stacks + size_t(thread + 1) * STACK_BYTES);
#if TILEWRIGHT_TSAN   // blocks run one after the other: what one wrote, the next may read
    __tsan_release(&engine.barrier_token);
    for (int thread = 0; thread < num_threads; ++thread) {
        __tsan_switch_to_fiber(engine.fibers[thread].tsan, 1);
        __tsan_acquire(&engine.barrier_token);
        __tsan_switch_to_fiber(engine.main_tsan, 1);
    }
#endif
    engine.current = MAIN;
    switch_to(engine.schedule == REVERSE || engine.schedule == GREEDY_HIGH ? num_threads - 1 : 0);
    if (engine.failed) return;
#if TILEWRIGHT_TSAN
    for (int thread = 0; thread < num_threads; ++thread) {
        __tsan_switch_to_fiber(engine.fibers[thread].tsan, 1);
        __tsan_release(&engine.barrier_token);
        __tsan_switch_to_fiber(engine.main_tsan, 1);
    }
    __tsan_acquire(&engine.barrier_token);
#endif
}

// Runs all blocks; returns null, or what went wrong.
TILEWRIGHT_UNCHECKED inline const char* run_grid(
    dim3 grid, int num_threads, unsigned schedule, unsigned seed, void (*entry)(void*), void* argument)
{
    if (!engine.stacks) {
        const size_t bytes = size_t(MAX_THREADS) * STACK_BYTES;
        engine.stacks = static_cast<char*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    }
#if TILEWRIGHT_TSAN
    engine.main_tsan = __tsan_get_current_fiber();
    for (int thread = 0; thread < num_threads; ++thread) {
        if (engine.fibers[thread].tsan) continue;
        char name[32];
        snprintf(name, sizeof name, "CUDA thread %d", thread);
        engine.fibers[thread].tsan = __tsan_create_fiber(1);
        __tsan_set_fiber_name(engine.fibers[thread].tsan, name);
    }
#endif
    engine.failed = false;
    engine.schedule = schedule;
    engine.seed = seed;
    engine.entry = entry;
    engine.argument = argument;
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
