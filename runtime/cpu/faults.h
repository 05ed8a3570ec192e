// What the processor or the user refuses while a kernel runs in this process: memory that is not there, a stack that is
// full, an interrupt from the keyboard. Each gives up the grid and becomes the launch's report.
#pragma once
#include <errno.h>
#include <signal.h>
#include "engine.h"

namespace tilewright {

constexpr size_t GUARD_BYTES = 64 * 1024;            // at the end of every fiber's stack, which nobody may touch
constexpr size_t SIGNAL_STACK_BYTES = 128 * 1024;
constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGINT};
constexpr int NUM_SIGNALS = TILEWRIGHT_ASAN || TILEWRIGHT_TSAN ? 0 : 3;   // sanitizers know more than we do

inline struct sigaction former_actions[3];
inline thread_local bool runs_here = false;          // whether this thread runs a grid

// Gives up the grid from a signal handler.
[[noreturn]] TILEWRIGHT_UNCHECKED inline void give_up(const char* what)
{
    snprintf(engine.report, sizeof engine.report, "%s; block %u %u %u; thread %d\n", what, blockIdx.x, blockIdx.y,
             blockIdx.z, engine.current);
    engine.failed = true;
    switch_to(MAIN);
    __builtin_unreachable();
}

TILEWRIGHT_UNCHECKED inline bool is_in_a_guard(const void* address)
{
    const auto offset = static_cast<const char*>(address) - engine.stacks;
    return offset >= 0 && size_t(offset) < MAX_THREADS * STACK_BYTES && size_t(offset) % STACK_BYTES < GUARD_BYTES;
}

TILEWRIGHT_UNCHECKED inline void on_signal(int number, siginfo_t* info, void* context)
{
    int position = 0;
    while (SIGNALS[position] != number) ++position;
    const bool ours = runs_here && engine.current != MAIN;
    if (number == SIGINT) {   // Python's own handler makes a KeyboardInterrupt of it, once the launch has returned
        const struct sigaction& former = former_actions[position];
        if (former.sa_flags & SA_SIGINFO) former.sa_sigaction(number, info, context);
        else if (former.sa_handler == SIG_DFL) sigaction(number, &former, nullptr), raise(number);
        else if (former.sa_handler != SIG_IGN) former.sa_handler(number);
        if (ours && former.sa_handler != SIG_IGN) give_up("interrupted");
        return;
    }
    if (ours && is_in_a_guard(info->si_addr))
        give_up("a thread's tiles do not fit on its stack: use smaller blocks or more warps");
    if (ours) {
        char what[200];
        snprintf(what, sizeof what, "an access to address %p, where no memory is: a pointer has left its array; "
                 "TILEWRIGHT_MODE=check finds the place", info->si_addr);
        give_up(what);
    }
    sigaction(number, &former_actions[position], nullptr);   // not ours: it happens again, to whoever handled it before
}

// Handles signals while it lives. A process has one at a time.
class SignalGuard {
public:
    SignalGuard()
    {
        stack_t own{};
        own.ss_sp = malloc(SIGNAL_STACK_BYTES);
        own.ss_size = SIGNAL_STACK_BYTES;
        sigaltstack(&own, &former_stack_);
        memory_ = own.ss_sp;
        struct sigaction action{};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        runs_here = true;
        for (int i = 0; i < NUM_SIGNALS; ++i) sigaction(SIGNALS[i], &action, &former_actions[i]);
    }

    ~SignalGuard()
    {
        for (int i = 0; i < NUM_SIGNALS; ++i) sigaction(SIGNALS[i], &former_actions[i], nullptr);
        runs_here = false;
        sigaltstack(&former_stack_, nullptr);
        free(memory_);
    }

    SignalGuard(const SignalGuard&) = delete;
    SignalGuard& operator=(const SignalGuard&) = delete;

private:
    stack_t former_stack_;
    void* memory_;
};

}  // namespace tilewright
