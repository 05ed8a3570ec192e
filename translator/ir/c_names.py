"""Identifiers that mean something in C++ and CUDA, or are declared by the headers that texts are compiled with."""

from __future__ import annotations

import re

from .c_library import for_doubles, is_global, is_macro
from .device_helpers import HELPERS

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
HELPER = re.compile("|".join(sorted({helper.names for helper in HELPERS if helper.names})))
# Functions of CUDA's math library whose plain names double-precision code calls; other code may use them as variables.
MATH_NAMES = frozenset(
    """exp exp2 log log2 sin cos tan tanh sqrt rsqrt pow erf floor ceil fabs fma fmod round isnan isinf""".split()
)
# What CUDA declares with C linkage, and generated files themselves: a kernel cannot have such a name, nor a constant outside of
# it, and a function of scalars might collide with the overload for its types.
CUDA_NAMES = frozenset(
    """acospi asinpi atanpi cospi cyl_bessel_i cyl_bessel_i0 cyl_bessel_i1 erfcinv erfcx erfinv norm norm3d norm4d normcdf
    normcdfinv rcbrt rhypot rnorm rnorm3d rnorm4d sincospi sinpi trap clock64 TwoFp8 std tilewright""".split()
)
CUDA_FUNCTION = re.compile(r"atomic(Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(_block|_system)?|make_u?[a-z]+[1-4]")
VECTOR_TYPE = re.compile(r"u?(?:char|short|int|long|longlong|float|double)[1-4]")
RUNTIME = re.compile(r"cuda[A-Z]\w*|CU[a-z]\w*")  # what CUDA's runtime and driver call their types and functions


def can_be_local(name: str) -> bool:
    """Whether a variable can have a name without hiding what the text calls or computes with."""
    if name in RESERVED or name.startswith("__"):  # CUDA's own begin with two underscores
        return False
    return not is_macro(name) and not any(taken.fullmatch(name) for taken in (VECTOR_TYPE, RUNTIME, HELPER))


def is_library_name(name: str) -> bool:
    """Whether CUDA or C has a function, a type or a variable of this name outside of functions."""
    words = {name, for_doubles(name)}
    known = not words.isdisjoint(CUDA_NAMES | MATH_NAMES) or any(map(is_global, words))
    return known or CUDA_FUNCTION.fullmatch(name) is not None


def can_be_global(name: str) -> bool:
    """Whether a user's constant can keep its name outside of all functions, where nothing else may have it."""
    return can_be_local(name) and not is_library_name(name)
