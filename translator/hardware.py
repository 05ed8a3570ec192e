"""Numbers of the hardware that are the same on every architecture text is written for; what differs is in `artifact.Target`.

"Guide" is the CUDA C++ Programming Guide, mostly its table "Technical Specifications per Compute Capability"; "PTX" is the
PTX ISA; "driver" is the CUDA Driver API. What is a choice of ours and no limit of the hardware stands where it is made.
"""

from __future__ import annotations

# Threads. (Guide, "SIMT Architecture"; PTX, "Asynchronous Warpgroup Level Matrix Instructions")
LANE_BITS = 5
WARP_SIZE = 1 << LANE_BITS
WARPGROUP_BITS = 7
WARPGROUP = 1 << WARPGROUP_BITS  # threads
WARPS_OF_WARPGROUP = WARPGROUP // WARP_SIZE
MOST_THREADS_OF_BLOCK = 1024
MAX_PROGRAMS_ACROSS = 65535  # blocks of a grid along its second and third axis
MOST_PROGRAMS = (2**31 - 1, MAX_PROGRAMS_ACROSS, MAX_PROGRAMS_ACROSS)  # along each axis
LAST_BARRIER = 15  # named barriers are numbered from 0, which is __syncthreads' (PTX, "bar")
MBARRIER_BYTES = 8  # (PTX, "mbarrier")

# Registers, of 32 bits. (Guide)
WORD_BYTES = 4
REGISTER_FILE = 65536  # of a multiprocessor
MOST_OF_THREAD = 255
REGISTER_STEP = 8  # registers of a thread are given out by so many

# Memory.
ACCESS_BITS = 4  # log2 of the bytes of the widest access of one thread (Guide, "Device Memory Accesses")
ACCESS_BYTES = 1 << ACCESS_BITS
SECTOR_BYTES = 32  # what memory reads or writes at once
CACHE_LINE_BYTES = 128
COPY_BYTES = (4, 8, 16)  # what cp.async moves (PTX, "cp.async")

# Shared memory.
BANK_BYTES_BITS = 2  # log2 of the bytes of a bank (Guide, "Shared Memory")
BANKS_BYTES_BITS = 7  # of all 32 banks together
# log2 of the bytes of an access of all lanes at once; wider ones are served part of a warp at a time
WIDEST_ONCE_BITS = 2
RESERVED_BYTES = 1024  # that the system keeps of a multiprocessor's for itself in every block

# Tensor maps and the copies by them. (driver, "cuTensorMapEncodeTiled"; PTX, "Tensors")
MAP_BYTES = 128
MAP_ALIGNMENT = 64  # bytes: of a map in memory
TENSOR_ALIGNMENT = 16  # bytes: of a tensor's address, and of every stride but that of 1
MAX_RANK = 5  # dimensions
BOX_COORDINATES = ("group", "volume", "plane", "row", "col")  # of a box, the contiguous one last
MAX_SIDE = 256  # elements of a box along a dimension
BOX_ALIGNMENT = 128  # bytes: of a box in shared memory
CHUNK_BYTES = 16  # what a swizzle moves as a whole (PTX, "Swizzling modes")
SWIZZLED_LINE_BYTES = 128  # the longest line that a swizzle permutes
SWIZZLE_ALIGNMENT = 1024  # bytes after which the widest swizzle repeats
