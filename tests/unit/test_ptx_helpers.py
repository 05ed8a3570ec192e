"""The text of the PTX helpers: complete, in order, and accepted by NVRTC for the architectures that have them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ptx_kernels import Asked, helper_text, kernel
from tilewright.emit.ptx_values import PTX_VALUES
from tilewright.emit.wrap import WIDTH
from tilewright.ir.c_names import can_be_local
from tilewright.ir.device_helpers import HELPERS, DeviceHelper
from tilewright.language.dtypes import PointerType, int32
from tilewright.runtime.building import nvrtc
from tilewright.schedule.products.instructions import SPLITS as SPLITS_OF

TEMPLATES = Path(__file__).parent.parent.parent / "templates" / "helpers"
COPIES: list[Asked] = [
    *(("cp_async", f"cp_async_{size}", {"bytes": size}) for size in (4, 8, 16)),
    ("cp_async_commit", "cp_async_commit", {}),
    ("cp_async_wait", "cp_async_wait", {}),
]
LDMATRIX: list[Asked] = [
    ("ldmatrix", f"ldmatrix_x{count}{'_trans' * trans}", {"count": count, "trans": trans})
    for count in (2, 4)
    for trans in (False, True)
]
STMATRIX: list[Asked] = [(t.replace("ld", "st"), n.replace("ld", "st"), v) for t, n, v in LDMATRIX]
MMA_PAIRS = [(16, "f16", "f16"), (16, "bf16", "bf16"), (8, "tf32", "tf32")]
MMA_PAIRS += [(32, a, b) for pair in (("s8", "u8"), ("e4m3", "e5m2")) for a in pair for b in pair]
BARRIERS: list[Asked] = [
    (name, name, {})
    for name in ("mbarrier_init", "mbarrier_init_fence", "mbarrier_arrive", "mbarrier_arrive_expect", "mbarrier_wait",
                 "tma_store_wait", "async_proxy_fence", "named_barrier_sync", "named_barrier_arrive",
                 "warpgroup_shrink", "warpgroup_grow", "tensor_map_prefetch")
]  # fmt: skip
TMA: list[Asked] = [(f"tma_{way}", f"tma_{way}_{r}d", {"rank": r}) for way in ("load", "store") for r in range(1, 6)]
WGMMA_REST: list[Asked] = [
    (name, name, {}) for name in ("wgmma_descriptor", "wgmma_fence", "wgmma_commit", "wgmma_wait")
]
needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")


def mma(k: int, a_type: str, b_type: str) -> Asked:
    return "mma", f"mma_m16n8k{k}", {"k": k, "a_type": a_type, "b_type": b_type, "acc": accumulator(a_type)}


def wgmma(n: int, k: int, a_type: str, b_type: str, **flags: bool) -> Asked:
    values = {"n": n, "k": k, "a_type": a_type, "b_type": b_type, "acc": accumulator(a_type), **flags}
    return "wgmma", f"wgmma_m64n{n}k{k}", values


def accumulator(a_type: str) -> str:
    return "s32" if a_type in ("s8", "u8") else "f32"


def compiles(body: str, asked: list[Asked], target: str, shared_bytes: int = 4096) -> None:
    artifact = kernel(body, asked, {"out": PointerType(int32)}, shared_bytes=shared_bytes, num_threads=128)
    cubin = nvrtc.compile_text(artifact, target)
    assert "warning" not in cubin.log and nvrtc.SERIALISED not in cubin.log, cubin.log


@needs_nvrtc
def test_copies_and_matrix_loads() -> None:
    body = """
    unsigned r0, r1, r2, r3;
    cp_async_4(shared_bytes, out, 3);
    cp_async_8(shared_bytes + 8, out, 8);
    cp_async_16(shared_bytes + 16, out, 0);
    cp_async_commit();
    cp_async_wait<1>();
    ldmatrix_x4(r0, r1, r2, r3, shared_bytes); out[0] = r0 + r1 + r2 + r3;
    ldmatrix_x4_trans(r0, r1, r2, r3, shared_bytes); out[1] = r0 + r1 + r2 + r3;
    ldmatrix_x2(r0, r1, shared_bytes); out[2] = r0 + r1;
    ldmatrix_x2_trans(r0, r1, shared_bytes); out[3] = r0 + r1;
"""
    compiles(body, [*COPIES, *LDMATRIX], "sm_80")


@needs_nvrtc
@pytest.mark.parametrize("pair", MMA_PAIRS, ids=lambda pair: "-".join(map(str, pair)))
def test_mma(pair: tuple[int, str, str]) -> None:
    k, a_type, _ = pair
    ctype = "int" if accumulator(a_type) == "s32" else "float"
    body = f"""
    {ctype} acc[4] = {{}};
    const unsigned a[4] = {{1, 2, 3, 4}}, b[2] = {{5, 6}};
    mma_m16n8k{k}(&acc[0], &acc[2], a, b);
    out[threadIdx.x] = acc[0] + acc[1] + acc[2] + acc[3];
"""
    targets = ("sm_89", "sm_90a") if a_type.startswith("e") else ("sm_80", "sm_90a")
    for target in targets:
        compiles(body, [mma(*pair)], target)


DOUBLES: list[Asked] = [
    ("mma_double", f"mma_m{rows}n8k{k}", {"rows": rows, "k": k}) for rows, k in ((8, 4), (16, 4), (16, 8), (16, 16))
]
SPLITS: list[Asked] = [
    ("round_tf32", "round_tf32", {}),
    ("split_tf32", "split_tf32", {}),
    ("pack_bf16", "pack_bf16", {}),
    ("split_bf16", "split_bf16", {}),
]


@needs_nvrtc
def test_products_of_doubles_and_of_parts() -> None:
    for asked in DOUBLES:
        rows, k = asked[2]["rows"], asked[2]["k"]
        body = f"""
    double acc[4] = {{}};
    const double a[{rows * k // 32}] = {{1.0}}, b[{k // 4}] = {{2.0}};
    {asked[1]}(&acc[0], {"&acc[2], " * (rows == 16)}a, b);
    out[threadIdx.x] = int(acc[0] + acc[3]);
"""
        compiles(body, [asked], "sm_80" if rows == 8 else "sm_90a")
    for parts, products in ((2, SPLIT_3), (3, SPLIT_6)):
        wide = "bf16" if parts == 3 else "tf32"
        values = {"mma": "mma_part", "steps": 1, "parts": parts, "products": products}
        part: Asked = ("mma", "mma_part", {"k": 16 if parts == 3 else 8, "a_type": wide, "b_type": wide, "acc": "f32"})
        body = f"""
    float acc[4] = {{}};
    unsigned a[{parts}][4] = {{{{1, 2, 3, 4}}}}, b[{parts}][2] = {{{{5, 6}}}};
    {"const unsigned whole[8] = {threadIdx.x, 2, 3, 4}; split_bf16(a, whole);" if parts == 3 else "split_tf32(a);"}
    mma_split(&acc[0], &acc[2], a, b);
    out[threadIdx.x] = int(acc[0] + acc[3]);
"""
        compiles(body, [*SPLITS, part, ("mma_split", "mma_split", values)], "sm_80")


SPLIT_3, SPLIT_6 = (SPLITS_OF[word].products for word in ("tf32x3", "bf16x6"))


@needs_nvrtc
def test_copies_with_a_cache_policy() -> None:
    asked = [("tma_load", f"tma_load_{r}d", {"rank": r, "hinted": True}) for r in range(1, 6)]
    loads = "".join(f"tma_load_{r}d(shared_bytes, map, {', '.join('12345'[:r])}, full, policy);\n" for r in range(1, 6))
    body = f"""
    const TensorMap& map = *reinterpret_cast<const TensorMap*>(out);
    Barrier* full = reinterpret_cast<Barrier*>(shared_bytes + 1024);
    const auto policy = l2_policy(*out > 0);
    {loads}
"""
    assert "L2::cache_hint" in helper_text(asked)
    compiles(body, [*asked, ("l2_policy", "l2_policy", {})], "sm_90a")


@needs_nvrtc
def test_barriers_tma_and_stores() -> None:
    loads = "".join(f"tma_load_{r}d(shared_bytes, map, {', '.join('12345'[:r])}, full);\n" for r in range(1, 6))
    stores = "".join(f"tma_store_{r}d(map, {', '.join('12345'[:r])}, shared_bytes);\n" for r in range(1, 6))
    body = f"""
    const TensorMap& map = *reinterpret_cast<const TensorMap*>(out);
    Barrier* full = reinterpret_cast<Barrier*>(shared_bytes + 1024);
    tensor_map_prefetch(map);
    mbarrier_init<1>(full, 1);
    mbarrier_init_fence();
    mbarrier_arrive_expect(full, 64);
    {loads}
    mbarrier_arrive(full);
    mbarrier_wait(full, 0);
    async_proxy_fence();
    {stores}
    tma_store_wait<0>();
    named_barrier_sync(1, 64);
    named_barrier_arrive(2, 64);
    warpgroup_shrink<40>();
    warpgroup_grow<232>();
    stmatrix_x4(shared_bytes, 1, 2, 3, 4);
    stmatrix_x4_trans(shared_bytes, 1, 2, 3, 4);
    stmatrix_x2(shared_bytes, 1, 2);
    stmatrix_x2_trans(shared_bytes, 1, 2);
"""
    compiles(body, [*BARRIERS, *TMA, *STMATRIX], "sm_90a")


WGMMAS = [wgmma(n, 16, "bf16", "bf16") for n in (8, 16, 32, 64, 128, 256)]
WGMMAS += [wgmma(64, 16, "f16", "f16", a_transposed=a, b_transposed=b) for a in (False, True) for b in (False, True)]
WGMMAS += [wgmma(n, k, a, b) for k, a, b in MMA_PAIRS for n in (8, 128)]
WGMMAS += [wgmma(32, k, a, b, a_registers=True) for k, a, b in MMA_PAIRS]
WGMMAS += [wgmma(32, 16, "bf16", "bf16", a_registers=True, b_transposed=True)]


@needs_nvrtc
@pytest.mark.parametrize("asked", WGMMAS, ids=lambda asked: "-".join(str(v) for v in asked[2].values()))
def test_wgmma(asked: Asked) -> None:
    _, name, values = asked
    ctype = "int" if values["acc"] == "s32" else "float"
    registers = values.get("a_registers", False)
    operand = "const unsigned long long a = wgmma_descriptor<128>(shared_bytes, 16, 1024)"
    if registers:
        operand = "const unsigned a[4] = {threadIdx.x, 2, 3, 4}"
    body = f"""
    {ctype} acc[2][{values["n"] // 4}] = {{}};
    {operand};
    const unsigned long long b = wgmma_descriptor<64>(shared_bytes, 16, 512);
    wgmma_pin(acc);
    wgmma_fence();
    {name}(acc, {"a" if registers else "a + 2"}, b);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_pin(acc);
    #pragma unroll
    for (int i = 0; i < {values["n"] // 4}; ++i) out[i * 128 + threadIdx.x] = acc[0][i] + acc[1][i];
"""
    pin: Asked = ("wgmma_pin", "wgmma_pin", {"acc": values["acc"]})
    compiles(body, [*WGMMA_REST, pin, asked], "sm_90a")


ALL: list[Asked] = [
    *COPIES,
    *LDMATRIX,
    *STMATRIX,
    *BARRIERS,
    *TMA,
    *WGMMA_REST,
    *(mma(*pair) for pair in MMA_PAIRS),
    *DOUBLES,
    *SPLITS,
    ("mma_split", "mma_tf32x3", {"mma": "mma_m16n8k8", "steps": 2, "parts": 2, "products": SPLIT_3}),
    *WGMMAS,
]


@pytest.mark.parametrize("asked", ALL, ids=lambda asked: asked[1] + "-".join(str(v) for v in asked[2].values()))
def test_the_text_is_tidy_and_explained(asked: Asked) -> None:
    lines = helper_text([asked]).splitlines()
    assert all(len(line) <= WIDTH and line == line.rstrip() and line.isascii() for line in lines), lines
    text = "\n".join(lines)
    assert re.search(
        rf"^// .*\n(?:// .*\n)*(?:template <int \w+(?:, int \w+)?>\n)?__device__ __forceinline__ \w+( long long)? {asked[1]}\(",
        text,
        re.M,
    ), text


def test_the_list_of_helpers_is_whole() -> None:
    listed = {helper.template for helper in HELPERS}
    assert listed == {path.name.removesuffix(".cu.j2") for path in TEMPLATES.glob("*.j2")}
    assert len(listed) == len(HELPERS) and set(PTX_VALUES) <= listed


@pytest.mark.parametrize("helper", HELPERS, ids=lambda helper: helper.template)
def test_no_variable_is_called_like_what_a_template_defines(helper: DeviceHelper) -> None:
    text = (TEMPLATES / f"{helper.template}.cu.j2").read_text()
    functions = set(re.findall(r"^(?:static )?__device__ [^(=\n]*?(\w+)[(\[]", text, re.M))
    types = set(re.findall(r"^(?:template <.*>\s*)?(?:struct(?: alignas\(\d+\))?|using) (\w+)", text, re.M))
    named = bool(re.search(r"^__device__ .*\{\{ name \}\}\(", text, re.M))
    assert functions or types or named or helper.names == ""
    assert {name for name in functions | types if can_be_local(name)} == set()
    assert not named or helper.names
    if not named:
        assert all(re.fullmatch(helper.names, function) for function in functions)


@pytest.mark.parametrize("asked", ALL, ids=lambda asked: asked[1] + "-".join(str(v) for v in asked[2].values()))
def test_no_variable_is_called_like_a_variant(asked: Asked) -> None:
    (helper,) = (helper for helper in HELPERS if helper.template == asked[0])
    assert re.fullmatch(helper.names, asked[1]) and not can_be_local(asked[1])


def test_requirements_stand_above() -> None:
    templates = [helper.template for helper in HELPERS]
    for place, helper in enumerate(HELPERS):
        assert set(helper.requires) <= set(templates[:place]), helper
    text = helper_text([("tma_load", "tma_load_2d", {"rank": 2}), ("mbarrier_wait", "mbarrier_wait", {})])
    words = ("shared_address(", "struct alignas(64) TensorMap", "using Barrier", "mbarrier_wait(", "tma_load_2d(")
    places = [text.index(word) for word in words]
    assert places == sorted(places)


def test_coordinates_are_outermost_first_in_cpp_and_last_in_ptx() -> None:
    text = re.sub(r"\s+", " ", helper_text([("tma_load", "tma_load_3d", {"rank": 3})]))
    assert "int plane, int row, int col, Barrier* full)" in text
    assert '[%0], [%1, {%2, %3, %4}], [%5];"' in text
    assert '"r"(col), "r"(row), "r"(plane)' in text
