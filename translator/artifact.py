"""What goes into a translation and what comes out: plain values that the runtime can cache, compare and print."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from .frozen import frozen
from .hardware import RESERVED_BYTES
from .language.dtypes import DType, Element, int32

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .outside import Reading


@frozen
class RuntimeArgument:
    """A parameter that is passed at launch: its type, and a divisor of its value: 16, 8, 4, 2 or 1, of addresses 16 or 1."""

    name: str
    element: Element
    divisor: int = 1


@frozen
class ConstantArgument:
    """A parameter that is folded into the text: a constexpr, None, or an integer equal to 1."""

    name: str
    value: Any


@frozen
class TupleArgument:
    """A parameter that is a tuple of arguments, which may be tuples again; `fields` are the names of a namedtuple's."""

    name: str
    items: tuple[Argument, ...]
    fields: tuple[str, ...] = ()


@frozen
class DescriptorArgument:
    """A parameter that is a `TensorDescriptor`.

    It becomes kernel parameters: the address `name`, divisible by 16; `name_shape_<axis>` (int32) per axis; and
    `name_stride_<axis>` (int64, multiples of 16 bytes) per axis but the last, whose stride is 1. The block's shape and the
    padding are part of the specialisation, and so is whether fp32 is rounded to tf32 when it is loaded. `divisible_by_16`
    says of which sides it is known.
    """

    name: str
    element: DType
    block_shape: tuple[int, ...]
    divisible_by_16: tuple[bool, ...]
    padding: str = "zero"
    rounds_to_tf32: bool = False


Argument = RuntimeArgument | ConstantArgument | TupleArgument | DescriptorArgument


def argument_at(arguments: tuple[Argument, ...], path: tuple[int, ...]) -> Argument:
    """The one that a `LaunchParameter` comes from, by its path: a descriptor has several of those."""
    found, *rest = (arguments[path[0]], *path[1:])
    for number in rest:
        found = found.items[number] if isinstance(found, TupleArgument) else found
    return found


def constants_of(argument: Argument) -> Iterator[ConstantArgument]:
    """The compile-time values in an argument."""
    if isinstance(argument, ConstantArgument):
        yield argument
    elif isinstance(argument, TupleArgument):
        for item in argument.items:
            yield from constants_of(item)


@frozen
class Options:
    """The launch options that change the text.

    `guards` allows text that is right only under the conditions in `Artifact.guards`; without, it is right for all values.
    `few_programs` is for launches of no more programs than the GPU has multiprocessors: each may have all that one has, and
    there is nobody to take turns with. The launcher asks for it where that makes a difference (`Artifact.for_many`).
    `enable_fp_fusion` lets the compiler make one `fma` of a product and a sum. `default_dot_input_precision` is the
    `input_precision` of dots of fp32 that do not name one. `debug` has assertions checked, and with `sanitize_overflow` that
    sums, differences and products of integers fit in their type. `launch_cooperative_grid` and `launch_pdl` ask for launches of
    these kinds (see `Artifact`).
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    debug: bool = False
    sanitize_overflow: bool = True
    enable_fp_fusion: bool = True
    guards: bool = True
    few_programs: bool = False
    default_dot_input_precision: str = "tf32"
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False

    @property
    def compiler_flags(self) -> tuple[str, ...]:
        """What the text cannot say itself, as NVRTC and nvcc take it."""
        return () if self.enable_fp_fusion else ("--fmad=false",)


@frozen
class Target:
    """A GPU architecture.

    Attributes:
      name: as compilers have it.
      capability: 90 for "sm_90a".
      max_static_shared_bytes: that a block can declare.
      max_dynamic_shared_bytes: that a block can ask for.
      shared_of_multiprocessor: bytes, of which each block takes `hardware.RESERVED_BYTES` beside its own.
      threads_of_multiprocessor: that it has at once.
      blocks_of_multiprocessor: that it has at once.
    """

    name: str
    capability: int
    max_static_shared_bytes: int
    max_dynamic_shared_bytes: int
    shared_of_multiprocessor: int
    threads_of_multiprocessor: int
    blocks_of_multiprocessor: int

    def resident_blocks(self, num_threads: int) -> int:
        """How many blocks of so many threads a multiprocessor can have at once, whatever else they take."""
        return min(self.threads_of_multiprocessor // num_threads, self.blocks_of_multiprocessor)

    def blocks_by_shared(self, shared_bytes: int) -> int:
        """How many blocks of so much shared memory a multiprocessor has room for."""
        return self.shared_of_multiprocessor // (shared_bytes + RESERVED_BYTES)

    @property
    def has_wgmma(self) -> bool:
        """Whether warpgroups multiply from shared memory, where tensor copies bring their operands: 9.0 alone."""
        return self.capability == 90

    @property
    def has_double_rows(self) -> bool:
        """Whether mma.sync has pieces of 16 rows of doubles, beside those of 8."""
        return self.capability >= 90

    @property
    def has_dependent_launch(self) -> bool:
        """Whether a grid can start before the one in front of it has ended."""
        return self.capability >= 90

    @property
    def has_matrix_stores(self) -> bool:
        """Whether a warp can store matrices as it loads them: stmatrix."""
        return self.capability >= 90

    @property
    def has_vector_atomics(self) -> bool:
        """Whether one instruction adds 16 bytes of neighbouring floats to memory, each of them atomically."""
        return self.capability >= 90


@frozen
class LaunchParameter:
    """One parameter of the generated kernel, in order: where its value comes from and how it is packed.

    `path` is the index of the user's argument, then of the item within a tuple; in a descriptor 0 is the address,
    (1, axis) a side and (2, axis) a stride. `divisibility` is a divisor of the value (of the address in bytes, for a
    pointer) that the text relies on. `finer` are those with which accesses would be wider, the greatest first: there are other
    texts for launches that have one.
    """

    name: str
    element: Element
    path: tuple[int, ...]
    divisibility: int = 1
    finer: tuple[int, ...] = ()


# The element types of tensor maps by our names (CU_TENSOR_MAP_DATA_TYPE_*); everything else is copied as bytes.
TENSOR_MAP_TYPES = {
    "fp16": "FLOAT16", "bf16": "BFLOAT16", "fp32": "FLOAT32", "fp64": "FLOAT64", "i32": "INT32", "u32": "UINT32",
    "i64": "INT64", "u64": "UINT64", "i16": "UINT16", "u16": "UINT16",
}  # fmt: skip
GRID_SIDES = ("num_programs_x", "num_programs_y", "num_programs_z")  # what a launch's arithmetic calls them
LARGEST_OFFSET = 2**31 - 1  # elements, of offsets that a text computes in 32 bits
SHARED_BYTES = "shared_bytes"  # what a text calls its dynamic shared memory
WIDE_ROW = 256  # tensors with rows of so many bytes are fetched into L2 by 256 bytes, others by 128


@frozen
class TensorMap:
    """A tensor map (`CUtensorMap`) that the launcher encodes and passes by value, after the kernel's other parameters.

    Sizes, strides and the artifact's guards are arithmetic in the names of the kernel's integer parameters, numbers,
    `+ - * // % ( )` and comparisons: text that means the same in Python and, with `/` for `//`, in C++, for none is below zero.

    Attributes:
      name: the C++ parameter, such as "a_map".
      element: the elements in memory.
      base: name of the pointer parameter that the tensor starts at.
      sizes: elements per dimension, the contiguous one first.
      strides: bytes from one index to the next, for every dimension after the first.
      box: elements per dimension that one copy moves, in the same order.
      swizzle: bytes of the swizzle pattern in shared memory: 0, 32, 64 or 128.
      made: whether the kernel makes the map itself, of what it loads from memory. The launcher knows nothing of such maps.
    """

    name: str
    element: DType
    base: str
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    made: bool = False


@frozen
class Artifact:
    """A translated kernel: the text and everything that a launcher must know.

    Attributes:
      source: the `.cu` text.
      kernel_name: the `extern "C"` name.
      target: the architecture it was written for, such as "sm_90a".
      num_threads: threads per block, all along x.
      shared_bytes: dynamic shared memory per block.
      static_shared_bytes: the static shared arrays' bytes, without what the compiler adds for itself.
      parameters: the kernel's parameters in order.
      writes: names of the pointer parameters that the kernel writes.
      lines: of every line of the `.cu` that came from a statement, its number (from 1), the name of the user's file, "" where
        that is `file`, and the line there.
      file: base name of the user's file.
      globals: values from outside that were read and may change: (the function that reads, name, value) of globals and of
        variables around, (the module, class or object, name, value) of members.
      readings: what else the text came from, besides the kernel's own text, the arguments and the options; None when that
        cannot be told (see `outside.py`).
      tensor_maps: passed after `parameters`, in order.
      guards: conditions under which the text is right, such as "M % 128 == 0" (see `TensorMap` for the language). The
        launcher takes the text made with `guards=False` where one does not hold.
      reaches: what offsets that the text computes in 32 bits do not exceed, if the guards hold: such as "N * (H // 2)", in the
        same language with `GRID_SIDES` as further names. The launcher takes the other text where one passes `LARGEST_OFFSET`.
      program_axes: along how many axes of the grid, from x on, lie the programs that a block runs one after another; 0 where
        a block runs a single one. The launcher starts no more blocks than the device can hold at once, and passes the numbers
        of programs along these axes as the last of `launch_parameters`.
      in_turns: whether these blocks lie along x alone, whatever the axes: they count the programs that have something to do.
      cooperative: whether all blocks must be on the device at once, as programs that wait for each other need.
      dependent: whether a launch may start while the grid before it in its stream still runs (programmatic dependent launch).
      compiler_flags: what NVRTC or nvcc must be told besides the language and the architecture.
      needs: the first architecture that has the text's instructions; of "sm_90a" it is the only one.
      title, about: the first line of the block at the top of the text, and those of its fields that a caller has to know: each
        a word and its lines.
      headers: of CUDA's, those that the text includes, without brackets.
      threads: what the text calls `num_threads`, such as "NUM_THREADS + WARPGROUP"; "" where it has no word for it.
      shared_alignment: in bytes, of dynamic shared memory, which `shared_declaration` declares; 0 without any.
      proxy_reads: whether shared memory is read through the asynchronous proxy.
      for_many: whether there is another text for few programs (`Options.few_programs`).
    """

    source: str
    kernel_name: str
    target: str
    num_threads: int
    shared_bytes: int
    parameters: tuple[LaunchParameter, ...]
    writes: tuple[str, ...] = ()
    lines: tuple[tuple[int, str, int], ...] = field(default=(), compare=False)
    file: str = ""
    globals: tuple[tuple[Any, str, Any], ...] = field(default=(), compare=False)
    readings: tuple[Reading, ...] | None = field(default=None, compare=False)
    tensor_maps: tuple[TensorMap, ...] = ()
    guards: tuple[str, ...] = ()
    reaches: tuple[str, ...] = ()
    program_axes: int = 0
    in_turns: bool = False
    cooperative: bool = False
    dependent: bool = False
    static_shared_bytes: int = 0
    compiler_flags: tuple[str, ...] = ()
    needs: str = "sm_80"
    title: str = ""
    about: tuple[tuple[str, tuple[str, ...]], ...] = ()
    headers: tuple[str, ...] = ()
    threads: str = ""
    shared_alignment: int = 0
    proxy_reads: bool = False
    for_many: bool = False

    @property
    def launch_parameters(self) -> tuple[LaunchParameter, ...]:
        """The kernel's parameters with the numbers of programs that a persistent kernel is told, but for tensor maps."""
        return (*self.parameters, *(LaunchParameter(name, int32, ()) for name in program_counts(self.program_axes)))

    @property
    def persistent(self) -> bool:
        """Whether blocks run one program after another."""
        return self.program_axes > 0


def shared_declaration(alignment: int) -> str:
    """How a text declares its dynamic shared memory."""
    return f"extern __shared__ __align__({alignment}) unsigned char {SHARED_BYTES}[];"


def program_counts(axes: int) -> tuple[str, ...]:
    """The names for the numbers of programs along the first axes of the grid, where a block runs programs of all of them."""
    return ("num_programs",) if axes == 1 else tuple(f"num_programs_{'xyz'[axis]}" for axis in range(axes))


def in_cpp(text: str) -> str:
    """A launch's arithmetic as C++ spells it: nothing that is divided is below zero."""
    return text.replace("//", "/")


def launch_conditions(artifact: Artifact) -> tuple[str, ...]:
    """What must hold at a launch: the guards, what offsets reach, and that no size or stride of tensor maps is zero."""
    texts = [text for one in artifact.tensor_maps for text in (*one.sizes, *one.strides)]
    encodable = (f"{text} > 0" for text in texts if not text.isdigit())
    return tuple(dict.fromkeys((*artifact.guards, *encodable, *map(small, artifact.reaches))))


def small(reach: str) -> str:
    """That offsets which reach so far fit in 32 bits."""
    return f"{reach} <= {LARGEST_OFFSET}"
