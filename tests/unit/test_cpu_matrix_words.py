"""The CPU run's matrix words against models of the fragment layouts in PTX's manual, written with NumPy alone."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from ptx_kernels import Asked, kernel, run_probe
from tilewright.language.dtypes import PointerType, float32, float64, int32, uint32

MMA_PAIRS = [(16, "f16", "f16"), (16, "bf16", "bf16"), (8, "tf32", "tf32")]
MMA_PAIRS += [(32, a, b) for pair in (("s8", "u8"), ("e4m3", "e5m2")) for a in pair for b in pair]
NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8,
         "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip
Array = NDArray[np.generic]


def matrix(type_: str, shape: tuple[int, ...], seed: int) -> Array:
    """Random integers that every format holds exactly, negative ones too where it can."""
    low = 0 if type_ == "u8" else -4
    return np.random.default_rng(seed).integers(low, 5, shape).astype(NUMPY[type_])


def words(elements: Array) -> NDArray[np.uint32]:
    """Elements as 32-bit registers, the first in the low bits."""
    return np.ascontiguousarray(elements).view(np.uint32)


def a_fragment(a: Array, lane: int) -> NDArray[np.uint32]:
    """The registers of a lane for A [16, K]: rows g and g + 8, and the same K / 2 further on."""
    group, member, half = lane // 4, lane % 4, a.shape[1] // 2
    each = half // 4
    places = [(group, 0), (group + 8, 0), (group, half), (group + 8, half)]
    return np.concatenate([words(a[row, k + member * each : k + (member + 1) * each]) for row, k in places])


def b_fragment(b: Array, lane: int) -> NDArray[np.uint32]:
    """The registers of a lane for B [K, 8]: column g."""
    group, member, half = lane // 4, lane % 4, b.shape[0] // 2
    each = half // 4
    return np.concatenate([words(b[k + member * each : k + (member + 1) * each, group]) for k in (0, half)])


def accumulator(type_: str) -> tuple[str, str, type]:
    return ("s32", "int", np.int32) if type_ in ("s8", "u8") else ("f32", "float", np.float32)


@pytest.mark.parametrize("pair", MMA_PAIRS, ids=lambda pair: "-".join(map(str, pair)))
def test_mma_multiplies_what_the_manual_says(pair: tuple[int, str, str]) -> None:
    k, a_type, b_type = pair
    acc, ctype, element = accumulator(a_type)
    a, b = matrix(a_type, (16, k), 1), matrix(b_type, (k, 8), 2)
    held = np.stack([np.concatenate([a_fragment(a, lane), b_fragment(b, lane)]) for lane in range(32)])
    if a_type == "tf32":
        held |= 0x1FFF  # the hardware ignores the low 13 bits
    start = np.random.default_rng(3).integers(-9, 9, (16, 8)).astype(element)
    result = start.copy()
    body = f"""
    const int lane = threadIdx.x;
    unsigned a[4], b[2];
    for (int r = 0; r < 4; ++r) a[r] = held[lane * 6 + r];
    for (int r = 0; r < 2; ++r) b[r] = held[lane * 6 + 4 + r];
    {ctype}* result = reinterpret_cast<{ctype}*>(out);
    {ctype}* upper = &result[lane / 4 * 8 + lane % 4 * 2];
    mma_m16n8k{k}(upper, upper + 64, a, b);
"""
    asked: Asked = ("mma", f"mma_m16n8k{k}", {"k": k, "a_type": a_type, "b_type": b_type, "acc": acc})
    probe = kernel(body, [asked], {"held": PointerType(uint32), "out": PointerType(int32)})
    run_probe(probe, held, result)
    expected = start + (a.astype(np.float64) @ b.astype(np.float64)).astype(element)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("rows", "k"), [(8, 4), (16, 4), (16, 8), (16, 16)])
def test_mma_of_doubles(rows: int, k: int) -> None:
    """PTX ISA, "Matrix Fragments for mma.m16n8k8" and its neighbours: registers of A take turns between halves of the rows."""
    a, b = (np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64) for seed, shape in
            ((1, (rows, k)), (2, (k, 8))))  # fmt: skip
    lanes = [(lane // 4, lane % 4) for lane in range(32)]
    held = np.array([
        [a[group + 8 * half, member + 4 * step] for step in range(k // 4) for half in range(rows // 8)]
        + [b[member + 4 * step, group] for step in range(k // 4)] for group, member in lanes
    ])  # fmt: skip
    start = np.random.default_rng(3).integers(-9, 9, (rows, 8)).astype(np.float64)
    result, count = start.copy(), rows // 8 * k // 4
    body = f"""
    const int lane = threadIdx.x;
    double a[{count}], b[{k // 4}];
    for (int r = 0; r < {count}; ++r) a[r] = held[lane * {count + k // 4} + r];
    for (int r = 0; r < {k // 4}; ++r) b[r] = held[lane * {count + k // 4} + {count} + r];
    double* upper = &out[lane / 4 * 8 + lane % 4 * 2];
    mma_m{rows}n8k{k}(upper, {"upper + 64, " * (rows == 16)}a, b);
"""
    asked: Asked = ("mma_double", f"mma_m{rows}n8k{k}", {"rows": rows, "k": k})
    probe = kernel(body, [asked], {"held": PointerType(float64), "out": PointerType(float64)})
    run_probe(probe, held, result)
    np.testing.assert_array_equal(result, start + a @ b)


def test_floats_are_split_into_parts_that_add_up() -> None:
    """Against ml_dtypes and the definition of rounding to nearest; infinities and NaN stay what they are."""
    x = np.random.default_rng(5).standard_normal(4096).astype(np.float32) * np.float32(2.0) ** np.arange(
        -100, 100, 200 / 4096
    )
    x = np.concatenate(
        [x.astype(np.float32), np.array([0.0, -0.0, 3.4e38, 1e-40, np.inf, -np.inf, np.nan, 1.0], np.float32)]
    )
    result = np.zeros((5, len(x)), np.float32)
    body = f"""
    for (int i = threadIdx.x; i < {len(x)}; i += 32) {{
        unsigned pair[2][1] = {{{{__float_as_uint(x[i])}}}};
        const unsigned whole[2] = {{pair[0][0], pair[0][0]}};
        unsigned parts[3][1];
        split_tf32(pair);
        split_bf16(parts, whole);
        for (int part = 0; part < 2; ++part) out[part * {len(x)} + i] = __uint_as_float(pair[part][0]);
        for (int part = 0; part < 3; ++part)
            out[(2 + part) * {len(x)} + i] = __uint_as_float(i % 2 ? parts[part][0] << 16 : parts[part][0] & 0xffff0000u);
    }}
"""
    asked: list[Asked] = [("split_tf32", "split_tf32", {}), ("split_bf16", "split_bf16", {})]
    pointers = {"x": PointerType(float32), "out": PointerType(float32)}
    run_probe(kernel(body, asked, pointers), x, result)
    ordinary = np.isfinite(x) & (np.abs(x) < 3e38)
    rest = x.copy()
    with np.errstate(invalid="ignore"):
        for part in range(3):
            rounded = rest.astype(ml_dtypes.bfloat16).astype(np.float32)
            np.testing.assert_array_equal(result[2 + part][ordinary], rounded[ordinary])
            rest = rest - rounded
    high, low = (result[part].astype(np.float64) for part in (0, 1))
    np.testing.assert_array_equal((high + low)[ordinary], x[ordinary].astype(np.float64))
    normal = ordinary & (np.abs(x) > 1e-37)
    assert (np.abs(low)[normal] <= 2.0**-11 * np.abs(x)[normal]).all() and (
        result[0].view(np.uint32)[normal] & 0x1FFF == 0
    ).all()
    np.testing.assert_array_equal(result[0][~np.isfinite(x)], x[~np.isfinite(x)])


@pytest.mark.parametrize("type_", ["f16", "bf16", "e4m3", "e5m2", "tf32"])
def test_every_bit_pattern_is_read_as_its_type(type_: str) -> None:
    """Products with 1 for all patterns, as column 0 of A in further and further blocks of 16."""
    k = {"f16": 16, "bf16": 16, "tf32": 8}.get(type_, 32)
    patterns = np.arange(256, dtype=np.uint8) if k == 32 else np.arange(65536, dtype=np.uint16)
    if type_ == "tf32":
        patterns = patterns.astype(np.uint32) << 16
    x = patterns.view(NUMPY[type_])
    blocks = len(x) // 16
    a = np.zeros((blocks, 16, k), NUMPY[type_])
    a[:, :, 0] = x.reshape(blocks, 16)
    each = k // 8
    held = np.zeros((blocks, 32, 4), np.uint32)
    first = np.ascontiguousarray(a[:, :, :each]).view(np.uint32)[..., 0]
    held[:, ::4, 0], held[:, ::4, 1] = first[:, :8], first[:, 8:]
    one = np.zeros(each, NUMPY[type_])
    one[0] = 1
    result = np.zeros((blocks, 16), np.float32)
    body = f"""
    const int lane = threadIdx.x;
    for (int block = 0; block < {blocks}; ++block) {{
        unsigned a[4], b[2] = {{lane == 0 ? {int(words(one)[0])}u : 0u, 0}};
        float upper[2] = {{}}, lower[2] = {{}};
        for (int r = 0; r < 4; ++r) a[r] = held[(block * 32 + lane) * 4 + r];
        mma_probe(upper, lower, a, b);
        float* result = reinterpret_cast<float*>(out) + block * 16;
        if (lane % 4 == 0) result[lane / 4] = upper[0], result[lane / 4 + 8] = lower[0];
    }}
"""
    asked: Asked = ("mma", "mma_probe", {"k": k, "a_type": type_, "b_type": type_, "acc": "f32"})
    probe = kernel(body, [asked], {"held": PointerType(uint32), "out": PointerType(int32)})
    run_probe(probe, held, result)
    np.testing.assert_array_equal(result.ravel(), x.astype(np.float32))


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_matrices_move_between_shared_memory_and_fragments(count: int, trans: bool) -> None:
    """The rows of all matrices lie in random order; what is stored from what was loaded is what was there."""
    suffix = "_trans" if trans else ""
    matrices = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    order = np.random.default_rng(4).permutation(count * 8).astype(np.int32)
    rows = np.zeros((count * 8, 8), np.uint16)
    rows[order] = matrices.reshape(-1, 8)
    places = np.zeros(32, np.int32)
    places[: count * 8] = order
    registers = np.zeros((32, count), np.uint32)
    copied = np.zeros_like(rows)
    names = ", ".join(f"r{i}" for i in range(count))
    body = f"""
    const int lane = threadIdx.x;
    unsigned short* tile = reinterpret_cast<unsigned short*>(shared_bytes);
    unsigned short* again = tile + {count * 64};
    const unsigned short* source = reinterpret_cast<const unsigned short*>(rows);
    for (int i = lane; i < {count * 64}; i += 32) tile[i] = source[i];
    __syncthreads();
    unsigned {names};
    ldmatrix_x{count}{suffix}({names}, tile + places[lane] * 8);
    stmatrix_x{count}{suffix}(again + places[lane] * 8, {names});
    const unsigned held[] = {{{names}}};
    for (int r = 0; r < {count}; ++r) registers[lane * {count} + r] = held[r];
    __syncthreads();
    for (int i = lane; i < {count * 64}; i += 32) reinterpret_cast<unsigned short*>(copied)[i] = again[i];
"""
    asked: list[Asked] = [
        (way, f"{way}_x{count}{suffix}", {"count": count, "trans": trans}) for way in ("ldmatrix", "stmatrix")
    ]
    pointers = {name: PointerType(uint32) for name in ("rows", "places", "registers", "copied")}
    run_probe(kernel(body, asked, pointers, shared_bytes=count * 256), rows, places, registers, copied)
    for lane in range(32):
        for number in range(count):
            held = matrices[number].T if trans else matrices[number]
            pair = held[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2]
            assert registers[lane, number] == int(pair[0]) | int(pair[1]) << 16
    np.testing.assert_array_equal(copied, rows)
