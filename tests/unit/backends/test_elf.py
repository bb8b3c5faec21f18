"""Our reader of ELF files against pyelftools, which others rely on."""

import io

import pytest

from irdiff.backends import elf
from irdiff.backends.elf import DYNSYM, NOBITS, NULL, SYMTAB
from tests.programs.mutation.artifacts import of_stage

elffile = pytest.importorskip(
    "elftools.elf.elffile", reason="pyelftools, of the development group, is missing"
)
BINARIES = [*of_stage("cubin"), *of_stage("hsaco")]
NUMBERS = {"SHN_UNDEF": 0, "SHN_ABS": 0xFFF1}
TYPES = {"SHT_NULL": NULL, "SHT_SYMTAB": SYMTAB, "SHT_NOBITS": NOBITS, "SHT_DYNSYM": DYNSYM}
DROPPED = 0b11000
"""Of `st_other`: pyelftools reads no such bits."""
VISIBILITIES = ("STV_DEFAULT", "STV_INTERNAL", "STV_HIDDEN", "STV_PROTECTED")


@pytest.mark.parametrize("artifact", BINARIES, ids=lambda artifact: artifact.name)
def test_header_and_sections(artifact):
    ours, theirs = elf.read(artifact.content, "a file"), elffile.ELFFile(io.BytesIO(artifact.content))
    assert (ours.flags, ours.abi_version) == (theirs["e_flags"], theirs["e_ident"]["EI_ABIVERSION"])
    for section, other in zip(ours.sections, theirs.iter_sections(), strict=True):
        fields = ("flags", "addr", "link", "info", "size", "addralign")
        read = (section.flags, section.address, section.link, section.info, section.size, section.alignment)
        assert read == tuple(other[f"sh_{name}"] for name in fields)
        assert section.name == other.name
        for name, number in TYPES.items():
            assert (section.type == number) == (other["sh_type"] == name)
        if section.type not in (NULL, NOBITS):
            assert section.content == other.data()


@pytest.mark.parametrize("artifact", BINARIES, ids=lambda artifact: artifact.name)
def test_symbols(artifact):
    theirs = elffile.ELFFile(io.BytesIO(artifact.content))
    tables = [table for name in (".symtab", ".dynsym") if (table := theirs.get_section_by_name(name))]
    ours = elf.symbols(elf.read(artifact.content, "a file"))
    assert ours
    for symbol, other in zip(ours, tables[0].iter_symbols(), strict=True):
        index = other["st_shndx"]
        read = (symbol.name, symbol.value, symbol.size, symbol.index)
        assert read == (other.name, other["st_value"], other["st_size"], NUMBERS.get(index, index))
        assert (symbol.type == elf.SECTION_SYMBOL) == (other["st_info"]["type"] == "STT_SECTION")
        assert (symbol.info >> 4 == 0) == (other["st_info"]["bind"] == "STB_LOCAL")
        said = other["st_other"]
        assert symbol.other & ~DROPPED == said["local"] << 5 | VISIBILITIES.index(said["visibility"])
