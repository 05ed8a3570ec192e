"""Which reshapes leave every element's place as it is, bit by bit, when sides are padded to powers of two."""

from __future__ import annotations


def keeps_places(shape: tuple[int, ...], new_shape: tuple[int, ...]) -> bool:
    """Whether a row-major reshape only regroups the bits of coordinates.

    The sides are matched from the last one on, in the smallest sections of equal products. A section of powers of two is
    regrouped; one with another side keeps its bits only where that side stands alone, beside sides of 1.
    """
    before, after = list(shape), list(new_shape)
    while before or after:
        old, new = _take(before), _take(after)
        left, right = old, new
        section = ([old], [new])
        while left != right:
            if left < right:
                section[0].append(_take(before))
                left *= section[0][-1]
            else:
                section[1].append(_take(after))
                right *= section[1][-1]
        sides = [side for part in section for side in part if side != 1]
        alone = all(len([side for side in part if side != 1]) <= 1 for part in section)
        if not alone and any(side & (side - 1) for side in sides):
            return False
    return True


def _take(sides: list[int]) -> int:
    """The last side that is left, 1 when none is."""
    return sides.pop() if sides else 1
