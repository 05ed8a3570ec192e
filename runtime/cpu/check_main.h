// The main program of a check: reads the launch and exactly sized buffers from a file, runs the kernel, writes the
// buffers back. It runs in a process of its own, built with a sanitizer.
#pragma once
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>
#include "ptx_words.h"

namespace tilewright {

const char* run_kernel(const Launch& launch, const unsigned long long* arguments);

inline void read_exactly(void* target, size_t bytes, FILE* file)
{
    if (fread(target, 1, bytes, file) != bytes) fprintf(stderr, "tilewright: the launch file is cut short\n"), exit(2);
}

// Ends this process when the one that waits for it ends, even by SIGKILL: nobody could stop an endless kernel otherwise.
// Other systems than Linux have no such call.
inline void end_with([[maybe_unused]] pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(2);   // it was gone before
#endif
}

// File: grid (3), schedule, seed, delivery, number of buffers, of arguments and of tensor maps; the buffers' sizes; per
// argument the number of its buffer (or all ones) and its value (an offset into the buffer); per tensor map the same of its
// base, and the rest of its 128 bytes; the buffers' bytes. All numbers have 8 bytes.
inline int check_main(int descriptor, pid_t parent)
{
    end_with(parent);
    FILE* file = fdopen(descriptor, "r+b");
    if (!file || fseek(file, 0, SEEK_SET)) return 2;
    unsigned long long head[9];
    read_exactly(head, sizeof head, file);
    const size_t num_buffers = head[6], num_arguments = head[7], num_maps = head[8];
    auto* sizes = static_cast<unsigned long long*>(calloc(num_buffers + 1, 8));
    auto* described = static_cast<unsigned long long*>(calloc(num_arguments + 1, 16));
    auto* arguments = static_cast<unsigned long long*>(calloc(num_arguments + num_maps + 1, 8));
    constexpr size_t MAP_WORDS = 16, MAP_RECORD = MAP_WORDS + 1;   // a record's first word is the buffer's number
    auto* maps = static_cast<unsigned long long*>(calloc(num_maps + 1, MAP_RECORD * 8));
    auto** buffers = static_cast<char**>(calloc(num_buffers + 1, sizeof(char*)));
    read_exactly(sizes, num_buffers * 8, file);
    read_exactly(described, num_arguments * 16, file);
    read_exactly(maps, num_maps * MAP_RECORD * 8, file);
    const long data = ftell(file);
    for (size_t i = 0; i < num_buffers; ++i) {
        // Aligned as on the device; the size is exact, so that the first byte past the end is seen.
        if (posix_memalign(reinterpret_cast<void**>(&buffers[i]), 256, sizes[i] ? sizes[i] : 1)) return 2;
        read_exactly(buffers[i], sizes[i], file);
        fprintf(stderr, "tilewright-buffer: %zu %p %llu\n", i, static_cast<void*>(buffers[i]), sizes[i]);
    }
    for (size_t i = 0; i < num_arguments; ++i) {
        const unsigned long long buffer = described[2 * i], value = described[2 * i + 1];
        arguments[i] = buffer == ~0ull ? value : reinterpret_cast<unsigned long long>(buffers[buffer]) + value;
    }
    for (size_t i = 0; i < num_maps; ++i) {
        unsigned long long *record = maps + i * MAP_RECORD, *encoded = record + 1;
        if (record[0] != ~0ull) encoded[0] += reinterpret_cast<unsigned long long>(buffers[record[0]]);
        arguments[num_arguments + i] = reinterpret_cast<unsigned long long>(encoded);
    }
    const dim3 grid{unsigned(head[0]), unsigned(head[1]), unsigned(head[2])};
    const Launch launch{grid, unsigned(head[3]), unsigned(head[4]), unsigned(head[5])};
    if (const char* report = run_kernel(launch, arguments)) {
        fprintf(stderr, "tilewright-fault: %s", report);
        _exit(86);
    }
    fseek(file, data, SEEK_SET);
    for (size_t i = 0; i < num_buffers; ++i) fwrite(buffers[i], 1, sizes[i], file);
    fclose(file);
    fflush(nullptr);
    _exit(0);   // nothing of the host's tear-down is the kernel's business
}

}  // namespace tilewright
