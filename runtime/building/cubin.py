"""Reads what a kernel needs out of its machine code: registers and static shared memory.

A cubin is a 64-bit little-endian ELF file. Section `.nv.info` holds attributes of (format, kind, size) and a payload; the one of
kind 0x2f gives (symbol, registers per thread). Section `.nv.shared.<kernel>` is as large as the kernel's static shared memory;
from sm_90 on it includes 1024 bytes that the system reserves. (CUDA Binary Utilities; the layout read off cuobjdump.)
"""

from __future__ import annotations

import struct

from tilewright.frozen import frozen
from tilewright.hardware import RESERVED_BYTES

REGISTER_COUNT = 0x2F
SIZED = 4  # the attribute format with a payload


@frozen
class Section:
    """A section of the file: its name, type, and where it lies."""

    name: str
    kind: int
    offset: int
    size: int
    link: int


def resources(cubin: bytes, kernel: str, capability: int) -> tuple[int, int]:
    """(registers per thread, bytes of static shared memory) of a kernel for compute capability `capability`, as 90."""
    sections = read_sections(cubin)
    symbols = _symbols(cubin, sections)
    registers = 0
    for section in sections:
        if section.name == ".nv.info":
            for symbol, count in _register_counts(cubin, section):
                if symbol < len(symbols) and symbols[symbol] == kernel:
                    registers = count
    shared = next((s.size for s in sections if s.name == f".nv.shared.{kernel}"), 0)
    if capability >= 90 and shared >= RESERVED_BYTES:
        shared -= RESERVED_BYTES
    return registers, shared


def read_sections(cubin: bytes) -> list[Section]:
    """All sections of an ELF file.

    Raises:
      ValueError: when it is none.
    """
    if cubin[:4] != b"\x7fELF":
        raise ValueError("not a cubin")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<3H", cubin, 0x3A)
    raw = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + number * size) for number in range(count)]
    strings = raw[names][4]
    return [Section(_string(cubin, strings + r[0]), r[1], r[4], r[5], r[6]) for r in raw]


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def _symbols(cubin: bytes, sections: list[Section]) -> list[str]:
    table = next((s for s in sections if s.name == ".symtab"), None)
    if table is None:
        return []
    strings = sections[table.link].offset
    starts = range(table.offset, table.offset + table.size, 24)
    return [_string(cubin, strings + struct.unpack_from("<I", cubin, start)[0]) for start in starts]


def _register_counts(cubin: bytes, section: Section) -> list[tuple[int, int]]:
    found = []
    position, end = section.offset, section.offset + section.size
    while position + 4 <= end:
        layout, kind, size = struct.unpack_from("<BBH", cubin, position)
        position += 4
        if layout == SIZED:
            if kind == REGISTER_COUNT and size == 8:
                found.append(struct.unpack_from("<2I", cubin, position))
            position += size
    return found
