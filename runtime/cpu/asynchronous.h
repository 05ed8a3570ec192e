// Operations that run beside the thread that starts them: copies of cp.async and TMA, and wgmma.
//
// An operation is performed when it is started, or as late as possible, as the launch asks; late means: in the wait that
// covers it, or, where an mbarrier tells of its end, when every thread waits. A missing wait then reads what was there
// before. To ThreadSanitizer each source of operations is a thread of its own, which knows what its starter knew and whose
// end is known to those who wait for it; a report names the line at which the operation was started.
#pragma once
#include "collectives.h"

namespace tilewright {

constexpr int GROUPS = 32;   // commit groups that are remembered; a wait names one of the last few

struct Operation {
    Operation* next;
    void (*perform)(Operation* self);
    const void* site;        // where in the kernel it was started
    void* tsan;              // as which of ThreadSanitizer's threads it runs
    void* reader;            // and as which it reads shared memory
    long number;             // among those of its queue
    uint64_t* completes;     // the mbarrier that counts its bytes, or null
    const void* group_token;
    int line;
    const void* map;         // the tensor map that a copy of TMA reads, or null
};

// Memory for operations. ThreadSanitizer takes malloc and free for accesses of the thread that calls them, and a reused
// address for the same token; there, memory is given out once per block.
#if TILEWRIGHT_TSAN
constexpr size_t ARENA_BYTES = size_t(1) << 34;   // reserved, not used
inline char* arena;
inline size_t arena_used;
TILEWRIGHT_UNCHECKED inline void* reserve(size_t bytes)
{
    if (!arena)
        arena = static_cast<char*>(
            mmap(nullptr, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    char* const place = arena + arena_used;
    arena_used += (bytes + 63) / 64 * 64;
    if (arena_used > ARENA_BYTES) fail("too many asynchronous operations in one block for a check", 0);
    return place;
}
inline void give_back(void*) {}
#else
inline void* reserve(size_t bytes) { return malloc(bytes); }
inline void give_back(void* place) { free(place); }
#endif

struct Queue {
    Operation* first;
    long started;

    TILEWRIGHT_UNCHECKED void append(Operation* operation)
    {
        Operation** place = &first;
        while (*place) place = &(*place)->next;
        operation->next = nullptr;
        *place = operation;
    }

    TILEWRIGHT_UNCHECKED void clear()
    {
        while (Operation* operation = first) first = operation->next, give_back(operation);
        started = 0;
    }
};

// The commit groups of one thread: how many of its operations had been started when each was closed.
struct Groups {
    long started, closed[GROUPS];
    unsigned count;
    char tokens[GROUPS];     // what the end of each group's operations synchronises on

    TILEWRIGHT_UNCHECKED const char* open_token() const { return &tokens[count % GROUPS]; }
    TILEWRIGHT_UNCHECKED void commit() { closed[count++ % GROUPS] = started; }

    // How many operations have ended when all but `pending` groups have.
    TILEWRIGHT_UNCHECKED long ended(int pending) const
    {
        return count > unsigned(pending) ? closed[(count - 1 - pending) % GROUPS] : 0;
    }

    // What ended groups did happens before what this thread does next.
    TILEWRIGHT_UNCHECKED void acquire_ended(int pending) const
    {
        for (unsigned group = count > GROUPS ? count - GROUPS : 0; group + pending < count; ++group)
            acquire(&tokens[group % GROUPS]);
    }
};

// What each thread, and each warpgroup, has under way.
struct ThreadQueues {
    Queue copies, stores;
    Groups copy_groups, store_groups, wgmma_groups;
    bool wgmma_fenced;
};
inline ThreadQueues threads_under_way[MAX_THREADS];
inline Queue wgmmas_under_way[MAX_THREADS / WARPGROUP];
inline Queue loads_under_way;

TILEWRIGHT_UNCHECKED inline ThreadQueues& mine() { return threads_under_way[engine.current]; }

// ThreadSanitizer's thread for one source of operations, made when it is first needed.
enum Source { COPIES_OF_THREAD, STORES_OF_THREAD, LOADS, WGMMA_OF_WARP, SOURCES };
constexpr int LOAD_SOURCES = 8;   // loads take turns, so that the end of one tells little of others
TILEWRIGHT_UNCHECKED inline void* source_thread(Source source, int number, bool reader = false)
{
#if TILEWRIGHT_TSAN
    static void* made[2][SOURCES][MAX_THREADS];
    static const char* names[SOURCES] = {"cp.async of CUDA thread %d", "TMA store of CUDA thread %d", "TMA load", "wgmma of warp %d"};
    void*& thread = made[reader][source][number];
    if (!thread) {
        char name[48];
        snprintf(name, sizeof name, names[source], number);
        void* const creator = __tsan_get_current_fiber();   // whose knowledge the new thread would inherit
        __tsan_switch_to_fiber(engine.main_tsan, 1);
        thread = __tsan_create_fiber(1);
        __tsan_set_fiber_name(thread, name);
        __tsan_switch_to_fiber(creator, 1);
    }
    return thread;
#else
    return (void)source, (void)number, (void)reader, nullptr;
#endif
}

// Runs `work` as ThreadSanitizer's thread `thread`, as if called from `site`.
template <typename Work>
TILEWRIGHT_UNCHECKED void run_as(void* thread, const void* site, Work work)
{
#if TILEWRIGHT_TSAN
    void* const before = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(thread, 1);
    __tsan_func_entry(const_cast<void*>(site));
    work();
    __tsan_func_exit();
    __tsan_switch_to_fiber(before, 1);
#else
    (void)thread, (void)site;
    work();
#endif
}

TILEWRIGHT_UNCHECKED inline bool at_once()
{
    if (engine.delivery != MIXED) return engine.delivery == EARLY;
    engine.seed = engine.seed * 1664525u + 1013904223u;
    return engine.seed >> 16 & 1;
}

// An operation that has a copy of what `work` needs. `work.read()` reads shared memory, with what the asynchronous proxy
// may know of it; `work()` does the rest, knowing all that the starter knew.
template <typename Work>
struct Task {
    Operation operation;
    Work work;

    TILEWRIGHT_UNCHECKED static void perform(Operation* self)
    {
        Task* task = reinterpret_cast<Task*>(self);
        run_as(self->reader, self->site, [&]() TILEWRIGHT_UNCHECKED {
            acquire(proxy_token(self));
            task->work.read();
            if (self->group_token) release(self->group_token);
        });
        run_as(self->tsan, self->site, [&]() TILEWRIGHT_UNCHECKED {
            acquire(self);
            task->work();
            if (self->group_token) release(self->group_token);
        });
    }
};

template <typename Work>
TILEWRIGHT_UNCHECKED Operation* make_operation(Work work, const void* site, Source source, int number, int line)
{
    auto* task = static_cast<Task<Work>*>(reserve(sizeof(Task<Work>)));
    void *const tsan = source_thread(source, number), *const reader = source_thread(source, number, true);
    task->operation = Operation{nullptr, Task<Work>::perform, site, tsan, reader, 0, nullptr, nullptr, line, nullptr};
    __builtin_memcpy(static_cast<void*>(&task->work), &work, sizeof work);
    return &task->operation;
}

TILEWRIGHT_UNCHECKED inline void perform(Operation* operation)
{
    operation->perform(operation);
    give_back(operation);
}

// Performs, in order, the operations of a queue that come before number `end`.
TILEWRIGHT_UNCHECKED inline void perform_until(Queue& queue, long end)
{
    while (queue.first && queue.first->number < end) {
        Operation* operation = queue.first;
        queue.first = operation->next;
        perform(operation);
    }
}

// Performs an operation, or leaves it for later; what the current thread did happens before it.
TILEWRIGHT_UNCHECKED inline void start(Queue& queue, Operation* operation)
{
    release_both(operation);
    if (at_once()) perform(operation);
    else queue.append(operation);
}

// Starts an operation of the current thread's group.
TILEWRIGHT_UNCHECKED inline void start_in_group(Queue& queue, Groups& groups, Operation* operation)
{
    operation->number = groups.started++;
    operation->group_token = groups.open_token();
    start(queue, operation);
}

TILEWRIGHT_UNCHECKED inline void wait_for_groups(Queue& queue, Groups& groups, int pending)
{
    perform_until(queue, groups.ended(pending));
    groups.acquire_ended(pending);
}

// ------------------------------------------------------------------------------------- the ends of threads and blocks

inline void complete_bytes(uint64_t* barrier, long bytes, int line);   // barrier_words.h

TILEWRIGHT_UNCHECKED inline bool deliver_to_a_waiter()
{
    for (Operation** place = &loads_under_way.first; *place; place = &(*place)->next) {
        Operation* const operation = *place;
        for (int thread = 0; thread < engine.num_threads; ++thread) {
            const Fiber& fiber = engine.fibers[thread];
            if (fiber.done || fiber.waits_for != operation->completes) continue;
            *place = operation->next;
            perform(operation);
            return true;
        }
    }
    return false;
}

TILEWRIGHT_UNCHECKED inline void thread_returns()
{
    const ThreadQueues& queues = mine();
    if (queues.copies.first)
        fail("a cp.async is still under way when its thread returns: no wait covers it", queues.copies.first->line);
    if (queues.stores.first)
        fail("a TMA store still reads shared memory when its thread returns: no wait covers it", queues.stores.first->line);
    const Queue& wgmmas = wgmmas_under_way[engine.current / WARPGROUP];
    if (wgmmas.first) fail("a wgmma is still under way when its thread returns: no wait covers it", wgmmas.first->line);
}

TILEWRIGHT_UNCHECKED inline void block_ends()
{
    if (loads_under_way.first)
        fail("a TMA load is still under way when its block ends: nobody waited for it", loads_under_way.first->line);
}

TILEWRIGHT_UNCHECKED inline void block_begins()
{
    loads_under_way.clear();
    for (Queue& queue : wgmmas_under_way) queue.clear();
    for (int thread = 0; thread < engine.num_threads; ++thread) {
        threads_under_way[thread].copies.clear();
        threads_under_way[thread].stores.clear();
        threads_under_way[thread] = ThreadQueues{};
    }
#if TILEWRIGHT_TSAN
    arena_used = 0;
#endif
}

}  // namespace tilewright
