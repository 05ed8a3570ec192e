"""Which instruction a dot uses, and who holds what of its accumulator.

Every tensor-core instruction leaves a lane the same places of each 16 x 8 piece of the accumulator: row `lane / 4` and the
one 8 below, columns `lane % 4 * 2` and the next (PTX ISA, "Matrix fragments for mma.m16n8k16" and "Register fragments for
wgmma.mma_async.m64nNk16"). Both are permutations of bits, so that accumulators are tiles like all others.

A tile shorter than a piece has fewer bits of it: the instruction's other rows and columns repeat those of the tile, so that
lanes that differ in nothing else hold copies, as everywhere. Along K what the tile lacks is zero.
"""

from __future__ import annotations

from typing import Literal

from ...artifact import Target
from ...frozen import frozen
from ...hardware import LANE_BITS, MOST_OF_THREAD, REGISTER_FILE, REGISTER_STEP, WARP_SIZE, WARPGROUP, WARPGROUP_BITS
from ...ir.types import padded
from ...language.dtypes import DType
from ..tiles.layout import REGISTER, Layout, bits_of

DotKind = Literal["wgmma", "mma", "fma"]

K_BYTES = 32  # of K per instruction; of doubles, deeper instructions exist that are slower
PTX_TYPES = {"fp16": "f16", "bf16": "bf16", "fp32": "tf32", "i8": "s8", "u8": "u8", "fp8e4nv": "e4m3", "fp8e5": "e5m2",
             "fp64": "f64"}  # fmt: skip
MMA_SINCE = {"f16": 80, "bf16": 80, "tf32": 80, "s8": 80, "u8": 80, "e4m3": 89, "e5m2": 89, "f64": 80}
HOPPER = 90  # the capability that has what `Target.has_wgmma` and `Target.has_double_rows` tell
PRODUCER_REGISTERS = 24  # what a thread of a loading warpgroup keeps
MAKER_REGISTERS = 40  # of one that makes tensor maps
MOST_REGISTERS = 240  # what a multiplying thread can take when another warpgroup gives
BESIDE_PRODUCTS = 26  # besides the accumulator: addresses, descriptors, counters
MAX_WGMMA_N = 256

ROW_IN_PIECE = (2, 3, 4, REGISTER)  # row = lane / 4 + 8 * register
COLUMN_IN_PIECE = (REGISTER, 0, 1)  # column = lane % 4 * 2 + register


@frozen
class Split:
    """How a product of fp32 operands is a sum of products of narrower parts.

    Part 0 is the operand rounded to the narrower type, each further part what the ones before it leave.

    Attributes:
      word: the precision's name.
      type: PTX's name of the parts' type.
      k: elements of K per instruction.
      steps: instructions along K whose products are summed apart, where the tile has so many.
      parts: how many there are of each operand.
      products: (part of a, part of b) of every product, in the order in which they are summed.
    """

    word: str
    type: str
    k: int
    steps: int
    parts: int
    products: tuple[tuple[int, int], ...]

    @property
    def itemsize(self) -> int:
        """Bytes of an element of a part."""
        return 4 if self.type == "tf32" else 2


# The products and their order are Triton's (F32DotTC).
LARGEST_LAST = ((1, 0), (0, 1), (0, 0))
SPLITS = {
    "tf32x3": Split("tf32x3", "tf32", 8, 2, 2, LARGEST_LAST),
    "bf16x3": Split("bf16x3", "bf16", 16, 2, 2, LARGEST_LAST),
    "bf16x6": Split("bf16x6", "bf16", 16, 2, 3, ((1, 1), (2, 0), (0, 2), *LARGEST_LAST)),
}


@frozen
class Instruction:
    """What multiplies, with the PTX names of the types, which are empty for fma.

    Attributes:
      kind: whose instruction it is: a warpgroup's, a warp's (`mma.sync`), or a thread's own.
      k: elements of K that one instruction takes.
      rows: of one instruction of kind "mma".
      split: how fp32 operands become several narrower ones, if they do; `a_type` and `b_type` are the parts' types.
    """

    kind: DotKind
    k: int = 1
    a_type: str = ""
    b_type: str = ""
    accumulator: str = ""
    rows: int = 16
    split: Split | None = None

    @property
    def since(self) -> int:
        """The capability that has it."""
        if self.kind == "wgmma" or (self.a_type == "f64" and self.rows == 16):
            return HOPPER
        return max((MMA_SINCE[type_] for type_ in (self.a_type, self.b_type) if type_), default=80)

    def depth(self, side: int) -> int:
        """The elements of K that the instructions of a dot take, of which its operands have `side`."""
        return -(-side // self.k) * self.k

    def steps(self, side: int) -> int:
        """The instructions along K whose products are summed before the accumulator is added."""
        steps = self.split.steps if self.split else 1
        return steps if self.depth(side) // self.k % steps == 0 else 1


def tensor_core(
    kind: DotKind, operands: tuple[DType, DType], result: DType, precision: str, target: Target
) -> Instruction | None:
    """The instruction of a kind on a target; None where it has none for these types.

    Args:
      kind: "wgmma" or "mma".
      operands: the types of a and b.
      result: the type of the sum.
      precision: the dot's `input_precision`.
      target: the target.
    """
    a, b = operands
    if not all(mma_takes(operand, target.capability) for operand in operands) or (
        a.name == "fp32" and precision == "ieee"
    ):
        return None
    types = PTX_TYPES[a.short], PTX_TYPES[b.short]
    split = SPLITS.get(precision) if a.name == "fp32" else None
    if kind == "wgmma":
        if a.name == "fp64" or not target.has_wgmma:
            return None
        if split is not None:
            return Instruction(kind, split.k, split.type, split.type, "f32", split=split)
        return Instruction(kind, K_BYTES // a.itemsize, *types, "s32" if result.is_int() else "f32")
    if a.name == "fp64":
        return Instruction(kind, 4, *types, "f64", rows=16 if target.has_double_rows else 8)
    if split is not None:
        return Instruction(kind, split.k, split.type, split.type, "f32", split=split)
    return Instruction(kind, K_BYTES // a.itemsize, *types, "s32" if result.is_int() else "f32")


def mma_takes(dtype: DType, capability: int) -> bool:
    """Whether `mma.sync` has operands of this type."""
    ptx = PTX_TYPES.get(dtype.short)
    return ptx is not None and MMA_SINCE[ptx] <= capability


def consumer_registers(num_warps: int, blocks: int = 1, producer: int = PRODUCER_REGISTERS) -> int:
    """Registers per multiplying thread, beside a warpgroup that loads with `producer` each, of so many blocks at once.

    A single warpgroup of a single block has all that a thread can have.
    """
    consumers = num_warps * WARP_SIZE // WARPGROUP
    if consumers < 2 and blocks == 1:
        return MOST_OF_THREAD
    at_start = registers_at_start(num_warps, blocks)
    return min((at_start * (consumers + 1) - producer) // consumers // REGISTER_STEP * REGISTER_STEP, MOST_REGISTERS)


def spare_registers(peak: int, num_warps: int, blocks: int, beside_loader: bool) -> int:
    """Registers of a multiplying thread beside the `peak` that its tiles take; negative where these want more."""
    most = REGISTER_FILE // (num_warps * WARP_SIZE * blocks)
    if beside_loader:
        most = consumer_registers(num_warps, blocks)
    return min(most, MOST_OF_THREAD) - BESIDE_PRODUCTS - peak


def registers_at_start(num_warps: int, blocks: int) -> int:
    """Registers of every thread, the loading warpgroup's too, before it gives any back."""
    consumers = num_warps * WARP_SIZE // WARPGROUP
    return REGISTER_FILE // (WARPGROUP * (consumers + 1) * blocks) // 8 * 8


def warpgroup_layout(shape: tuple[int, ...], num_warps: int) -> Layout | None:
    """The accumulator of wgmma: each warpgroup has bands of 64 rows; None where the shape does not divide so or fit.

    Args:
      shape: [M, N], powers of two.
      num_warps: of the block; four make a warpgroup.
    """
    if len(shape) != 2 or num_warps % 4 or shape[0] < 64:
        return None
    rows, columns = shape
    warpgroup_bits = bits_of(num_warps) - 2
    across_m = min(warpgroup_bits, bits_of(rows // 64))
    across_n = warpgroup_bits - across_m
    n = columns >> across_n
    if n < 8 or n > MAX_WGMMA_N:
        return None
    first_n = WARPGROUP_BITS + across_m
    m_tiles = bits_of(rows // 64) - across_m
    m_axis = (*ROW_IN_PIECE, 5, 6, *[REGISTER] * m_tiles, *range(WARPGROUP_BITS, first_n))
    n_axis = (*COLUMN_IN_PIECE, *[REGISTER] * (bits_of(n) - 3), *range(first_n, first_n + across_n))
    layout = Layout((m_axis, n_axis), bits_of(num_warps) + LANE_BITS)
    accumulator = layout.registers(0) * layout.registers(1)
    return layout if accumulator + BESIDE_PRODUCTS <= consumer_registers(num_warps) else None


def warp_layout(shape: tuple[int, ...], num_warps: int) -> Layout:
    """The accumulator of `mma.sync`: warps side by side, each with a part that is as square as can be.

    Args:
      shape: [M, N] or [batch, M, N].
      num_warps: of the block; warps that find nothing left hold copies.
    """
    *batch, rows, columns = map(padded, shape)
    left = bits_of(num_warps)
    across_batch = min(left, bits_of(batch[0])) if batch else 0
    left -= across_batch
    across_m = across_n = 0
    while left:
        tall, wide = rows >> across_m, columns >> across_n
        if wide >= 16 and (wide >= tall or tall < 32):
            across_n += 1
        elif tall >= 32:
            across_m += 1
        else:
            break
        left -= 1
    first_m = LANE_BITS + across_n
    first_batch = first_m + across_m
    row, column = ROW_IN_PIECE[: bits_of(rows)], COLUMN_IN_PIECE[: bits_of(columns)]
    n_axis = (*column, *[REGISTER] * (bits_of(columns) - 3 - across_n), *range(LANE_BITS, first_m))
    m_axis = (*row, *[REGISTER] * (bits_of(rows) - 4 - across_m), *range(first_m, first_batch))
    axes: tuple[tuple[int, ...], ...] = (m_axis, n_axis)
    if batch:
        registers = [REGISTER] * (bits_of(batch[0]) - across_batch)
        axes = ((*registers, *range(first_batch, first_batch + across_batch)), *axes)
    return Layout(axes, bits_of(num_warps) + LANE_BITS)


def fma_layout(shape: tuple[int, ...], num_warps: int) -> Layout:
    """The accumulator of a dot without tensor cores: small squares of elements per thread, then threads, then the rest."""
    thread_bits = bits_of(num_warps) + LANE_BITS
    total = [bits_of(side) for side in shape]
    square = [0] * len(shape)
    spare = sum(total) - thread_bits
    for axis in (len(shape) - 1, len(shape) - 2) * 2:  # up to 4 x 4
        if spare > 0 and square[axis] < min(total[axis], 2):
            square[axis] += 1
            spare -= 1
    axes: list[tuple[int, ...]] = []
    next_bit = 0
    for axis in reversed(range(len(shape))):
        count = min(total[axis] - square[axis], thread_bits - next_bit)
        rest = total[axis] - square[axis] - count
        axes.insert(0, (*[REGISTER] * square[axis], *range(next_bit, next_bit + count), *[REGISTER] * rest))
        next_bit += count
    return Layout(tuple(axes), thread_bits)


def whole_pieces(shape: tuple[int, ...]) -> bool:
    """Whether no side needs padding."""
    return all(padded(side) == side for side in shape)
