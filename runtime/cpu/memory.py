"""The memory of a check: the arrays of a launch, and the allocations that stand for them in the checking process.

Arrays that share bytes, as views of one array do, share an allocation, so that each sees what is written to the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frozen import frozen

PROMISED_ALIGNMENT = 16  # what a specialisation may promise of an address, in bytes


@frozen
class Buffer:
    """Memory that the kernel may touch: its address in this process, its bytes, the argument's name."""

    address: int
    content: memoryview
    name: str

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.address + self.content.nbytes


@frozen
class Region:
    """One allocation: the addresses in this process that it stands for, and the arrays in it."""

    start: int
    end: int
    buffers: tuple[Buffer, ...]

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.end - self.start

    def content(self) -> bytes:
        """What its arrays hold."""
        found = bytearray(self.size)
        for buffer in self.buffers:
            found[buffer.address - self.start : buffer.end - self.start] = buffer.content
        return bytes(found)

    def write_back(self, content: bytes) -> None:
        """Puts what a run has left into the arrays that may be written."""
        for buffer in self.buffers:
            if not buffer.content.readonly:
                buffer.content[:] = content[buffer.address - self.start : buffer.end - self.start]

    def described(self, before: bool) -> str:
        """The arrays that begin where the region does, or end there, with the bytes of one."""
        edge = min(buffer.address for buffer in self.buffers) if before else self.end
        near = [buffer for buffer in self.buffers if (buffer.address if before else buffer.end) == edge]
        names = dict.fromkeys(buffer.name for buffer in near)
        return f"{' and '.join(names)} ({max(buffer.content.nbytes for buffer in near)} bytes)"


def regions(buffers: Sequence[Buffer]) -> list[Region]:
    """The allocations for some arrays, which may overlap."""
    found: list[Region] = []
    for buffer in sorted(buffers, key=lambda one: (one.address, -one.content.nbytes)):
        if found and buffer.address < found[-1].end:
            last = found.pop()
            # What the second array's address was promised to be a multiple of, its place in the allocation must be too.
            start = last.start // PROMISED_ALIGNMENT * PROMISED_ALIGNMENT
            found.append(Region(start, max(last.end, buffer.end), (*last.buffers, buffer)))
        else:
            found.append(Region(buffer.address, buffer.end, (buffer,)))
    return found


def place_of(address: int, found: Sequence[Region]) -> tuple[int, int] | None:
    """The region that an address lies in, before one that ends there, and how many bytes from its start."""
    near = [(number, address - one.start) for number, one in enumerate(found) if one.start <= address <= one.end]
    return min(near, key=lambda place: place[1] == found[place[0]].size, default=None)
