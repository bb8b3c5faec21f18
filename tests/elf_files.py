"""ELF files made anew from the sections of real ones, with something replaced."""

import struct
from collections.abc import Callable
from dataclasses import replace

from irdiff.backends import elf
from irdiff.backends.elf import NOBITS, Section

HEADER_BYTES = 64

Edit = Callable[[Section], Section]


def rebuilt(binary, *edits, flags=None, abi_version=None):
    """The same file with each section as the edits leave it; its sections follow one another."""
    file = elf.read(binary, "a file")
    sections = list(file.sections)
    for edit in edits:
        sections = [edit(section) for section in sections]
    (names_index,) = struct.unpack_from("<H", binary, 0x3E)
    header = bytearray(binary[:HEADER_BYTES])
    header[8] = file.abi_version if abi_version is None else abi_version
    struct.pack_into("<I", header, 0x30, file.flags if flags is None else flags)
    return assembled(bytes(header), sections, names_index)


def assembled(header, sections, names_index):
    names, body, rows = bytearray(b"\0"), bytearray(), []
    for section in sections:
        rows.append(len(names))
        names += section.name.encode() + b"\0"
    sections[names_index] = replace(sections[names_index], content=bytes(names))
    table = []
    for section, name in zip(sections, rows, strict=True):
        size = section.size if section.type == NOBITS else len(section.content)
        place = HEADER_BYTES + len(body)
        table.append(
            struct.pack(
                "<IIQQQQIIQQ", name, section.type, section.flags, section.address, place, size,
                section.link, section.info, section.alignment, 0,
            )
        )  # fmt: skip
        body += section.content
    whole = bytearray(header) + body + b"".join(table)
    struct.pack_into("<Q", whole, 0x28, HEADER_BYTES + len(body))
    struct.pack_into("<HHH", whole, 0x3A, 64, len(sections), names_index)
    return bytes(whole)


def elf_file(contents):
    """A file that has nothing but sections of these names and contents."""
    sections = [
        Section(name, 1, elf.EXECUTED, 0, len(content), 0, 0, 16, content)
        for name, content in contents.items()
    ]
    names = Section(".shstrtab", elf.STRTAB, 0, 0, 0, 0, 0, 1, b"")
    return assembled(b"\x7fELF\x02\x01\x01".ljust(HEADER_BYTES, b"\0"), [*sections, names], len(sections))


def named(name, change):
    """An edit of the sections whose name begins so."""
    return lambda section: change(section) if section.name.startswith(name) else section


def content(name, change):
    return named(name, lambda section: replace(section, content=change(section.content)))
