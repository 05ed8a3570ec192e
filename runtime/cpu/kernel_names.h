// Names that a kernel's variables may have and that the system's headers, which the kernel's text does not include, define
// as macros: forgotten after the last use of ours. And a word that means more than it says.
#pragma once

#undef sa_handler
#undef sa_sigaction
#undef si_addr
#undef si_addr_lsb
#undef si_arch
#undef si_band
#undef si_call_addr
#undef si_fd
#undef si_int
#undef si_lower
#undef si_overrun
#undef si_pid
#undef si_pkey
#undef si_ptr
#undef si_status
#undef si_stime
#undef si_syscall
#undef si_timerid
#undef si_uid
#undef si_upper
#undef si_utime
#undef si_value
#undef sigev_notify_attributes
#undef sigev_notify_function

#define static_cast tilewright::converted   // see math_words.h
