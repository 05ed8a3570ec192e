// Integer division by zero, which x86 stops a program for and GPUs do not: elements outside of a mask divide too.
//
// A quotient of what cannot be divided is the dividend and the remainder 0, as in the interpreter; likewise the one quotient
// that does not fit, of the smallest number by -1. Other processors do not trap.
#pragma once
#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>
#endif
#include "sanitizers.h"

namespace tilewright {

#if defined(__x86_64__)
inline thread_local bool runs_a_grid = false;
inline struct sigaction divisions_before;   // what the process does about a division by zero outside of grids

// The bytes of the `div` or `idiv` at `code`, or 0 when something else stands there.
inline int division_bytes(const unsigned char* code, bool& bytewise)
{
    const unsigned char* at = code;
    while (*at == 0x66 || *at == 0x67 || *at == 0x2e || *at == 0x3e) ++at;
    if ((*at & 0xf0) == 0x40) ++at;   // REX
    bytewise = *at == 0xf6;
    if (*at != 0xf6 && *at != 0xf7) return 0;
    const unsigned char operand = *++at;
    const int mode = operand >> 6, kind = operand >> 3 & 7, base = operand & 7;
    if (kind < 6) return 0;
    ++at;
    const bool scaled = mode != 3 && base == 4;
    const bool no_base = mode == 0 && (scaled ? (*at & 7) == 5 : base == 5);
    return int(at - code) + scaled + (no_base || mode == 2 ? 4 : mode == 1 ? 1 : 0);
}

TILEWRIGHT_UNCHECKED inline void finish_division(int signal, siginfo_t* info, void* context)
{
    (void)info;
    greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    bool bytewise = false;
    const int bytes = division_bytes(reinterpret_cast<const unsigned char*>(registers[REG_RIP]), bytewise);
    if (!runs_a_grid || !bytes) {   // not ours: it happens again, to whom it was meant for
        sigaction(signal, &divisions_before, nullptr);
        return;
    }
    if (bytewise) registers[REG_RAX] &= ~greg_t(0xff00);   // ah is the remainder
    else registers[REG_RDX] = 0;
    registers[REG_RIP] += bytes;
}
#endif

// While one exists on this thread, integer divisions by zero go on.
struct Divisions {
    TILEWRIGHT_UNCHECKED Divisions()
    {
#if defined(__x86_64__)
        struct sigaction action = {};
        action.sa_sigaction = finish_division;
        action.sa_flags = SA_SIGINFO | SA_NODEFER;
        sigaction(SIGFPE, &action, &divisions_before);
        runs_a_grid = true;
#endif
    }

    TILEWRIGHT_UNCHECKED ~Divisions()
    {
#if defined(__x86_64__)
        runs_a_grid = false;
        sigaction(SIGFPE, &divisions_before, nullptr);
#endif
    }
};

}  // namespace tilewright
