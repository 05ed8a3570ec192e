// What the check mode's sanitizers must be told: synchronisation, fibers, and accesses that are made for somebody else.
#pragma once
#include <stddef.h>
#include <stdint.h>

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
void __tsan_read_range(void*, long);
void __tsan_write_range(void*, long);
void __tsan_func_entry(void*);
void __tsan_func_exit();
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

namespace tilewright {

// Everything that this thread did happens before what follows an `acquire` of the same token.
TILEWRIGHT_UNCHECKED inline void release(const void* token)
{
#if TILEWRIGHT_TSAN
    __tsan_release(const_cast<void*>(token));
#endif
    (void)token;
}

TILEWRIGHT_UNCHECKED inline void acquire(const void* token)
{
#if TILEWRIGHT_TSAN
    __tsan_acquire(const_cast<void*>(token));
#endif
    (void)token;
}

// Tells the race detector of an access by the current thread or asynchronous operation; `site` is the place in the kernel
// that asked for it, where the detector does not know it.
TILEWRIGHT_UNCHECKED inline void note_read(const void* start, size_t bytes, const void* site = nullptr)
{
#if TILEWRIGHT_TSAN
    if (site) __tsan_func_entry(const_cast<void*>(site));
    if (bytes) __tsan_read_range(const_cast<void*>(start), long(bytes));
    if (site) __tsan_func_exit();
#endif
    (void)start, (void)bytes, (void)site;
}

TILEWRIGHT_UNCHECKED inline void note_write(const void* start, size_t bytes, const void* site = nullptr)
{
#if TILEWRIGHT_TSAN
    if (site) __tsan_func_entry(const_cast<void*>(site));
    if (bytes) __tsan_write_range(const_cast<void*>(start), long(bytes));
    if (site) __tsan_func_exit();
#endif
    (void)start, (void)bytes, (void)site;
}

// Touches both ends of an access that is made later, so that leaving an allocation is reported where it was asked for.
TILEWRIGHT_UNCHECKED inline void touch(const void* start, size_t bytes)
{
#if TILEWRIGHT_ASAN
    if (!bytes) return;
    const auto* first = static_cast<const volatile unsigned char*>(start);
    (void)first[0], (void)first[bytes - 1];
#endif
    (void)start, (void)bytes;
}

}  // namespace tilewright
