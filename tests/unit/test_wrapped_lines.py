"""Where lines that are too long break."""

from __future__ import annotations

import pytest
from tilewright.emit.wrap import WIDTH, wrap_code

LONG = "static_cast<int>(static_cast<long long>(a_very_long_name_of_a_value_that_is_loaded_ahead[r]))"
FURTHER = "i * BLOCK + static_cast<long long>((r * ROW_THREADS + row) / GROUP) < rows"


@pytest.mark.parametrize(
    "line",
    [
        f"x[r] = load_if(q + {LONG} * 64 + offset[r] * stride + column, {FURTHER}, __float2bfloat16(0.0f));",
        f"copy(&x[stage][place], v + ({LONG} % steps % chunks / ((T + BLOCK - 1) / BLOCK)) * T * H, {FURTHER} ? 16 : 0);",
        f"const long long place = {LONG} * stride_of_rows_of_the_matrix + {LONG} * stride_of_columns + {LONG} % {LONG};",
    ],
)
@pytest.mark.parametrize("indent", (4, 12, 20))
def test_a_part_that_fills_a_line_ends_no_breaking(line: str, indent: int) -> None:
    lines = wrap_code(line, indent)
    assert "".join("".join(lines).split()) == "".join(line.split())
    assert max(map(len, lines)) <= WIDTH + 20, lines  # what has no place to break may stand out


def test_a_name_that_fits_nowhere_stands_alone() -> None:
    name = "n" * (WIDTH + 5)
    assert wrap_code(f"a = f({name}, b);", 4) == ["    a =", f"        f({name},", "          b);"]


def test_a_comparison_is_a_place_to_break() -> None:
    one, other = "first_values_of_this_thread[r][c]", "values_of_the_other_thread[r][c]"
    line = f"largest[r] = combine(largest[r], {{{one}, static_cast<int>({one} != {other})}});"
    assert max(map(len, wrap_code(line, 24))) <= WIDTH
    assert wrap_code(f"const bool chosen = {one} + {one} >= {other};", 12) == [
        f"{' ' * 12}const bool chosen = {one} + {one}",
        f"{' ' * 16}>= {other};",
    ]


def test_lines_start_where_the_bracket_that_they_are_in_does() -> None:
    """An argument started where its call did, and what follows a call where its arguments do."""
    first, second = (f"(word[{i}] >> shifts[{i}] & 15) - (zeros[{i}] >> zero_shifts[{i}] & 15)" for i in ("c", "next"))
    lines = wrap_code(f"const half2 pair = small<-15>({first}, {second}) * scales[column];", 24)
    assert [line.strip() for line in lines[-2:]] == ["- (zeros[next] >> zero_shifts[next] & 15))", "* scales[column];"]
    assert [len(line) - len(line.lstrip()) for line in lines] == [24, 54, 54, 54, 28]


def test_template_arguments_that_are_computed_stay_together() -> None:
    place = (
        "const int w_tile_place = swizzled<int, BN, BK / 8>(r * 2 + tid / (4 * WARP_SIZE), s_col * S_VEC + v * VEC);"
    )
    assert any("swizzled<int, BN, BK / 8>(" in line for line in wrap_code(place, 24))
