// Runs a CUDA kernel on the CPU: one fiber per CUDA thread, one block after the other on the calling thread.
//
// A fiber runs until it must wait: at a barrier, or at an operation that other threads have not reached. Whoever arrives
// last does the work for all, through pointers to the waiting fibers' own variables, and makes them runnable. Asynchronous
// copies and wgmmas (asynchronous.h) are performed at once or as late as their waits allow, as the launch asks. Which
// runnable fiber is next is the schedule's choice; the greedy ones let a warp run as far ahead as barriers allow, which
// brings missing barriers to light. With ThreadSanitizer, fibers are announced as threads and barriers as synchronisation,
// so that races between CUDA threads are reported as what they are.
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#include "sanitizers.h"

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace tilewright {

constexpr int MAX_THREADS = 1024;
constexpr int LANES = 32;
constexpr size_t STACK_BYTES = (TILEWRIGHT_ASAN ? 256 : 1024) * 1024;   // AddressSanitizer marks all of it in every block
constexpr size_t REPORT_BYTES = 4096;

constexpr int WARPGROUP = 128;
constexpr int NAMED_BARRIERS = 16;

enum Schedule { ROUND_ROBIN = 0, REVERSE = 1, GREEDY_LOW = 2, GREEDY_HIGH = 3, RANDOM = 4 };
enum Delivery { EARLY = 0, LATE = 1, MIXED = 2 };   // when asynchronous operations are performed

struct Fiber;
using Describe = void (*)(const Fiber& fiber, char* text, size_t room);   // what a waiting fiber lacks

struct Fiber {
#if defined(__x86_64__)
    void* stack_pointer;
#else
    ucontext_t context;
#endif
    void* tsan;
    void* tsan_proxy;       // its second self: what asynchronous reads of shared memory may rely on
    void* fake_stack;
    const char* waits_at;   // the operation at which it waits, or null
    const void* waits_for;  // the barrier at which it waits, where it is one
    Describe describe;
    int line;               // of the generated text
    int parity;             // of the mbarrier's phase that it waits for
    bool runnable, done;
};

struct Warp {
    unsigned arrived, exited;
    void* values[LANES];          // what each lane brings to a warp operation
    const char* operations[LANES];
};

struct NamedBarrier {
    int arrived, threads, line;
};

struct Engine {
    int num_threads, current, alive;
    unsigned schedule, seed, delivery;
    NamedBarrier barriers[NAMED_BARRIERS];
    unsigned long long blocks_started;
    unsigned char* shared;        // the dynamic shared memory
    size_t shared_bytes;
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
    bool proxies;                 // whether the kernel has such reads
    char block_token[2];          // what blocks synchronise on, for ThreadSanitizer
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
inline bool deliver_to_a_waiter();   // performs an asynchronous copy that a waiting thread waits for; false without one

TILEWRIGHT_UNCHECKED inline bool same_place(const Fiber& one, const Fiber& other)
{
    if (one.done || other.done) return one.done == other.done;
    return one.waits_at == other.waits_at && one.waits_for == other.waits_for && one.line == other.line
        && one.parity == other.parity;
}

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
        while (last + 1 < engine.num_threads && same_place(fiber, engine.fibers[last + 1])) ++last;
        char lacks[160] = "";
        if (fiber.waits_at && fiber.describe) fiber.describe(fiber, lacks, sizeof lacks);
        if (fiber.done) add(snprintf(text, room, "threads %d-%d have returned\n", first, last));
        else if (fiber.waits_at)
            add(snprintf(text, room, "threads %d-%d wait at %s, line %d%s\n", first, last, fiber.waits_at, fiber.line, lacks));
        first = last + 1;
    }
    engine.failed = true;
    switch_to(MAIN);
    __builtin_unreachable();
}

// ----------------------------------------------------------------------------------------------------- switching

#if defined(__x86_64__)
// Saves the callee-saved registers and the stack of one fiber, restores those of another.
void switch_stacks(void** save, void* to) asm("tilewright.switch");   // a dot, so that no kernel can have that name
asm(".text\n.weak tilewright.switch\n.type tilewright.switch,@function\ntilewright.switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
    ".size tilewright.switch, .-tilewright.switch\n");
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
    switch_stacks(save, to == MAIN ? engine.main_stack_pointer : engine.fibers[to].stack_pointer);
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

// The same, after performing what waiting threads wait for where nothing else can go on.
TILEWRIGHT_UNCHECKED inline int next_fiber()
{
    int next = choose();
    while (next == MAIN && deliver_to_a_waiter()) next = choose();
    return next;
}

// The current fiber waits until somebody makes it runnable.
TILEWRIGHT_UNCHECKED inline void wait_at(
    const char* operation, int line, const void* what = nullptr, Describe describe = nullptr)
{
    Fiber& fiber = engine.fibers[engine.current];
    fiber.waits_at = operation;
    fiber.waits_for = what;
    fiber.describe = describe;
    fiber.line = line;
    fiber.runnable = false;
    const int next = next_fiber();
    if (next == MAIN) fail("deadlock: every thread that is left waits", line);
    switch_to(next);
    fiber.waits_at = nullptr;
    fiber.waits_for = nullptr;
}

// --------------------------------------------------------------------------- what the asynchronous proxy sees
//
// wgmma and TMA stores read shared memory through a proxy of their own; what a thread wrote reaches it by that thread's
// async_proxy_fence or a later one of somebody who knows of the write. The race detector therefore has a second self of
// every thread: barriers order both selves, each among its own kind, and a fence tells the second what the first knows.

inline const void* proxy_token(const void* token) { return static_cast<const char*>(token) + 1; }

// Runs `work` as the second self of the current thread.
template <typename Work> TILEWRIGHT_UNCHECKED void as_proxy(Work work)
{
#if TILEWRIGHT_TSAN
    if (!engine.proxies) return;
    __tsan_switch_to_fiber(engine.fibers[engine.current].tsan_proxy, 1);
    work();
    __tsan_switch_to_fiber(engine.fibers[engine.current].tsan, 1);
#else
    (void)work;
#endif
}

// `release` and `acquire` for both selves; the byte after a token is the second's.
TILEWRIGHT_UNCHECKED inline void release_both(const void* token)
{
    release(token);
    as_proxy([token]() TILEWRIGHT_UNCHECKED { release(proxy_token(token)); });
}

TILEWRIGHT_UNCHECKED inline void acquire_both(const void* token)
{
    acquire(token);
    as_proxy([token]() TILEWRIGHT_UNCHECKED { acquire(proxy_token(token)); });
}

// Makes everyone runnable who waits for `what`.
TILEWRIGHT_UNCHECKED inline void wake(const void* what)
{
    for (int thread = 0; thread < engine.num_threads; ++thread)
        if (engine.fibers[thread].waits_at && engine.fibers[thread].waits_for == what) engine.fibers[thread].runnable = true;
}

}  // namespace tilewright
