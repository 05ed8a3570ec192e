"""Identifiers that mean something in C++ and CUDA, or are declared by the headers that texts are compiled with."""

from __future__ import annotations

import re

RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const consteval constexpr constinit const_cast continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile linux
    unix wchar_t while xor xor_eq _Alignas _Alignof _Atomic _Bool _Complex _Float16 _Generic _Imaginary _Noreturn
    _Pragma _Static_assert _Thread_local half half2 dim3 warpSize threadIdx blockIdx blockDim gridDim main printf
    min max abs fmaxf fminf fmaf fabsf NUM_THREADS NUM_WARPS WARP_SIZE ALL_LANES SharedArrays TensorMap MadeMaps
    Barrier Packet shared_bytes""".split()
)
# What the functions of `templates/helpers` are called.
HELPER = re.compile(
    r"align_rows|async_proxy_fence|block_reduce(_rows)?(_in_order)?|choose|clamp_nan|combine_\w+|copy_rows"
    r"|count_(below|up_to)|cp_async_(\d+|commit|wait)"
    r"|divide|forget|free_map_slot|grid_(wait|release_dependents)|in_register|l2_policy|ldmatrix_\w+|stmatrix_\w+"
    r"|(load|store)_(one|if|vec|packet|matrices|byte_pairs?)(_\w+)?|atomic_(add|max|min|and|or|xor|xchg|cas)(_\w+)?"
    r"|made_maps|map_slot_taken|make_tensor_map_2d|(max|min)_nan|mbarrier_\w+|w?(g?mma_)m\d+n\d+k\d+\w*"
    r"|named_barrier_\w+|pack_\w+|power_of_two|reduce_to_first_lane|rest_of_tf32|round_(pairs|tf32|toward_zero)|row_lead|shared_address|shifted"
    r"|shuffle_xor|sigmoid(_double)?|(small|fields|bytes|fp8)_\w+2|split_(bf16|tf32|tile)|square_root|swap_with_lane|swizzled"
    r"|take_map_slot|tensor_map_prefetch|tma_(load|store)_\w+|transpose_bytes|valid_bytes|warp_reduce(_in_order)?|warpgroup_\w+|wgmma_\w+"
)
# Functions of CUDA's math library whose plain names double-precision code calls; other code may use them as variables.
MATH_NAMES = frozenset(
    """exp exp2 log log2 sin cos tan tanh sqrt rsqrt pow erf floor ceil fabs fma fmod round isnan isinf""".split()
)
# What generated files call their own constants and types, and what CUDA's built-in declarations and the C headers of
# nvcc and of the CPU run declare with C linkage: a kernel cannot have such a name, nor a constant outside of it, and a
# function of scalars might collide with the overload for its types.
LIBRARY_NAMES = MATH_NAMES | frozenset(
    """abort acos acosh acospi access alarm asin asinh asinpi atan atan2 atanh atanpi atexit atof atoi atol bsearch
    calloc cbrt clock close confstr copysign cosh cospi crypt dup dup2 erfc erfcinv erfcx erfinv execl
    execv exit exp10 expm1 fclose fdim fdopen fflush fgetc fgets fileno finite fma fmax fmin fopen fork
    fprintf fputc fputs fread free frexp fscanf fseek ftell ftw fwrite gamma getc getchar getenv gets getpid hypot
    ilogb index isalnum isalpha isatty isdigit isfinite isnormal j0 j1 jn kill labs ldexp ldiv lgamma link llabs
    llrint llround log10 log1p logb lrint lround lseek malloc memchr memcmp memcpy memmove memset mktemp mlock mmap
    modf mprotect msync munmap nan nearbyint nextafter nexttoward nice norm norm3d norm4d normcdf normcdfinv open
    pause pclose perror pipe popen pread putc putchar putenv puts pwrite qsort raise rand random rcbrt read readlink
    realloc remainder remove remquo rename rewind rhypot rindex rint rmdir rnorm rnorm3d rnorm4d round scalb
    scalbln scalbn scanf select setenv signal signbit significand sincos sincospi sinh sinpi sleep snprintf sprintf
    srand srandom sscanf stpcpy strcat strchr strcmp strcpy strdup strlen strncpy strstr strtod strtok strtol swab
    symlink sync sysconf system tgamma time tmpfile trap trunc truncate ungetc unlink usleep vfork vprintf wait
    write y0 y1 yn clock64 assert stdin stdout stderr errno NULL NAN INFINITY EOF std tilewright
    size_t div""".split()
)
# Macros of the C library's headers of mathematics, limits and errors, which nvcc's own headers include: neither a constant
# nor a variable can have such a name, since what stands behind it is put in its place.
MACRO = re.compile(
    r"M_[0-9A-Z_]+|FP_[A-Z]+|HUGE_VALF?|(U?INT_?(FAST|LEAST)?(8|16|32|64|PTR|MAX)?|U?(CHAR|SHRT|LONG|LLONG)|SCHAR|SIZE|SSIZE"
    r"|PTRDIFF|RAND)_(MAX|MIN|BIT|WIDTH)|(FLT|DBL|LDBL)_[A-Z0-9_]+|errno|stdin|stdout|stderr|NULL|NAN|INFINITY|EOF"
)
VECTOR_TYPE = re.compile(r"u?(?:char|short|int|long|longlong|float|double)[1-4]")
RUNTIME = re.compile(r"cuda[A-Z]\w*|CU[a-z]\w*")  # what CUDA's runtime and driver call their types and functions


def can_be_local(name: str) -> bool:
    """Whether a variable can have a name without hiding what the text calls or computes with."""
    if name in RESERVED or name.startswith("__"):  # CUDA's own begin with two underscores
        return False
    return not any(taken.fullmatch(name) for taken in (VECTOR_TYPE, RUNTIME, MACRO, HELPER))


def can_be_global(name: str) -> bool:
    """Whether a user's constant can keep its name outside of all functions, where nothing else may have it."""
    of_floats = name[:-1] if name.endswith(("f", "l")) else name  # expf, expl
    return can_be_local(name) and name not in LIBRARY_NAMES and of_floats not in LIBRARY_NAMES
