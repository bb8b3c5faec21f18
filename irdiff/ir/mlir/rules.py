r"""Canonical form of MLIR text in Triton's dialects: ttir, ttgir, glir and the `source` stage.

Rules (before → after; why the meaning is kept; source: MLIR Language Reference, sections in brackets)
- `… loc("a.py":3:1)`, `#loc7 = loc(…)`, `// …` → dropped: locations and comments are not part of an
  operation's meaning [Location]. One exception is of Triton's making: `tt.assert` passes the file
  and line of its location to the device. That change shows in the LLVM IR.
- `%x_4`, `^bb3`, `%arg7` → `%4`, `^b0`, numbered where they are defined, anew in each function: names
  of values and blocks are not kept by the compiler [Identifiers]. Scopes are those of regions: sibling
  regions use a name twice, and an isolated region may hide an outer one (`mlir_names`).
- `#blocked1` → its definition; the lines `#blocked1 = …` dropped: an alias is an abbreviation of the
  printer [Attribute Value Aliases].
- `{b = 1, a = 2}` → `{a = 2, b = 1}`, also for the attributes of the module, each on its own line:
  dictionaries have no order [Dictionary Attribute]. Only where every entry is `name = value` or a unit
  attribute and at least one has a value.
- the name of the one public function → `@__kernel__`: a symbol nothing in the text calls.
- `tt.func private @kernels.f__fp32(…) … {` → `@function__0`, at each place: a private symbol is referenced
  by this text alone [Symbols and Symbol Tables] (`symbols`). One without a body is outside of it, and stays.
- module attribute `"ttng.two-ctas" = false` → header: absent means false. Seen in Triton 3.9.0: the one
  reader of the attribute, `getModuleTwoCTAs` (TritonNvidiaGPU/IR/Dialect.h), returns false without it;
  every text for sm_90 and sm_100 prints `false`, none of 3.8.0 prints it; a Gluon kernel with two CTAs
  and a `TensorMemoryLayout(…, two_ctas=True)` prints `true` (and `cta_group::2` in PTX). `true` stays.
- `amdg.buffer_load …`, `amdg.buffer_store … : !tt.ptr<f16> -> tensor<8xf16, #l>` → `: tensor<8xf16, #l>`,
  where the pointer is one to the tensor's elements: until 3.8 the type was not printed but inferred from
  the tensor in just this way, so the shorter spelling has one reading. A pointer to anything else stays.
- `amdg.buffer_load_to_local … : !tt.ptr<f16>[tensor<…>] -> …` → `: <f16>[…`: until 3.8 the printer left out
  the name of a type that the operation fixes. Both seen in 3.8.0 and 3.9.0 on 534 operations of the corpus,
  of which no other spelling was seen; other operations of `amdg` are left as they are.
- `!tt.tensordesc<tensor<16x64xbf16>>` → `!tt.tensordesc<16x64xbf16>`, and the result type of
  `tt.make_tensor_descriptor`, `<tensor<16x64xbf16>>` → `<16x64xbf16>`: the block's shape, element and layout
  are what a tensor's type has between its brackets. Seen in 3.7.1 and 3.8.0, whose texts else are the same.
- runs of blanks and indentation → one blank, none.

Kept on purpose: every other module attribute (warps, CTAs, target: launch ABI), argument attributes,
types, layouts, strings, constants and the order of operations.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from irdiff.errors import NormalizeError
from irdiff.ir.canonical import Rows, unrecognized
from irdiff.ir.lexing import HIDDEN, KERNEL, MLIR, Strings, UnclearError, collapse_spaces
from irdiff.ir.mlir.names import Names
from irdiff.ir.symbols import rename_functions, words

MAX_EXPANDED = 1 << 20
"""Characters an alias may stand for; real layouts have a few hundred."""
MAX_GROWTH = 32
"""How many times longer a text and its aliases may be once these are expanded."""

BLOCK = 1 << 17
"""Characters that are taken through the rules together."""

_SIMPLE_LOCATION = re.compile(r" loc\(#loc\d*\)")
_SHALLOW_LOCATION = re.compile(r" loc\([^()\n]*+(?:\([^()\n]*+\)[^()\n]*+)*+\)")
_LOCATION = re.compile(r" ?(?<![\w.])loc\(")
_BRACKET = re.compile(r"[()\n]")
_LOCATION_ALIAS = re.compile(r"\n#loc\w* = loc\([^\n]*")
_ALIAS = re.compile(r"\n([#!][A-Za-z_][\w$-]*) = ([^\n]*)")
_ATTRIBUTE_ALIAS_USE = re.compile(r"(#[A-Za-z_][\w$-]*+)(?![\w.<])")
_ALIAS_USE = re.compile(r"([#!][A-Za-z_][\w$-]*+)(?![\w.<])")
_RECOGNIZED = re.compile(
    rf"^(?:module\b|(?:(?:tt|llvm|func|gpu)\.func|builtin\.module)\b|[{HIDDEN}]\(\))", re.M
)
_MODULE = re.compile(rf"^(module(?: @[\w.${HIDDEN}]+)?) attributes \{{(.*)\}} \{{$")
_PUBLIC = re.compile(
    r"\.func public @(?:(?<=\btt\.func public @)|(?<=\bllvm\.func public @)|(?<=\bfunc\.func public @))"
    r"([\w.$]+)(?=\()"
)
"""The constant text is matched first, and what stands before it afterwards: this makes the search fast."""
_SYMBOL = re.compile(rf"@([\w.$-]++|[{HIDDEN}])")
_PRIVATE = re.compile(
    rf"^(?:tt|llvm|func)\.func (?:private|internal) (?:[^@\n]* )?@([\w.$-]++|[{HIDDEN}])\((.*)", re.M
)
_ASSEMBLY = re.compile(r"^[^\n]*?asm[^\n]*+", re.M)
_BUFFERS = "amdg.buffer_"
_BUFFER_LINE = re.compile(rf"^[^\n]*?{re.escape(_BUFFERS)}[^\n]*+", re.M)
_BUFFER = re.compile(r"(?:%[\w.$-]+ = )?amdg\.buffer_(load|store|load_to_local) ")
_POINTER_INTO = re.compile(r"!tt\.ptr<\w+>\[")
_POINTER_TO_ELEMENT = re.compile(r"^!tt\.ptr<(\w+)> -> (?=tensor<(?:\d+x)++\1[,>])")
_DESCRIPTOR = re.compile(r"!tt\.tensordesc<tensor<([^<>\n]*+)>>")
_MADE_DESCRIPTOR = re.compile(
    r"^((?:%[\w.$-]+ = )?tt\.make_tensor_descriptor [^\n]*, )<tensor<([^<>\n]*+)>>$", re.M
)
_IMPLIED = frozenset({'"ttng.two-ctas" = false', "ttng.two-ctas = false"})


def rows(stage: str, text: str) -> Rows:
    header: dict[str, str] = {}
    body = [line for block in blocks(stage, text, header=header) for line in block]
    return Rows(body=body, tail=[], header=header)


def blocks(stage: str, text: str, *, header: dict[str, str]) -> Iterator[list[str]]:
    """The rows block by block; what belongs to the header is put into it on the way.

    A block is taken through every rule before the next one, for texts of 20 MB are met and each rule makes
    copies; only what one block must know of another (names, aliases, symbols) is looked for before.
    Raises UnclearError and NormalizeError, only the latter also on the way.
    """
    modules = _modules(text)
    if len(modules) > 1:
        each = [blocks(stage, module, header=header) for module in modules]
        return itertools.chain.from_iterable(each)
    strings = Strings(MLIR)
    parts = [_strip(strings.read(part)) for part in _cut(text)]
    if not any(map(_RECOGNIZED.search, parts)):
        raise unrecognized(stage, "a module or a function")
    symbols, names = _symbols(parts, strings), Names()
    for number, part in enumerate(parts):
        spelled = _sort_dictionaries(_respell_descriptors(_respell_buffers(part)), strings)
        if symbols:
            spelled = _SYMBOL.sub(lambda match: f"@{symbols.get(match[1], match[1])}", spelled)
        parts[number] = "\n".join(map(names.rename, spelled.split("\n")))
    aliases = _Aliases(parts, len(text))
    return (_expanded(part, aliases, header, strings) for part in parts)


def _modules(text: str) -> list[str]:
    """The modules of a log or of a test's input, each with the aliases that it defines."""
    modules: list[str] = []
    for piece in filter(None, _BETWEEN_MODULES.split(text)):
        if modules and not _RECOGNIZED.search(modules[-1]):
            modules[-1] += piece
        else:
            modules.append(piece)
    if len(modules) > 1 and not _RECOGNIZED.search(modules[-1]):
        modules[-2:] = [modules[-2] + modules[-1]]
    return modules


def _expanded(part: str, aliases: _Aliases, header: dict[str, str], strings: Strings) -> list[str]:
    expanded = [
        _module_line(line, header, strings) if line[:6] == "module" else line
        for line in aliases.expand(part).split("\n")
    ]
    return strings.restore("\0".join(expanded)).split("\0")


def _cut(text: str) -> Iterator[str]:
    """Canonical form of whole lines at once: no rule looks beyond the end of a line."""
    start = 0
    while (end := text.find("\n", start + BLOCK)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _strip(text: str) -> str:
    """Without locations and superfluous blanks."""
    text = collapse_spaces(_SIMPLE_LOCATION.sub("", text))
    text = _LOCATION_ALIAS.sub("\n", f"\n{text}")[1:]
    if "loc(" in text:
        shallow = _SHALLOW_LOCATION.sub("", text)
        text = _drop_locations(text) if "loc(" in shallow else shallow
    return text


def _drop_locations(text: str) -> str:
    """Locations with brackets inside; from one that does not end on its line, the line stays as it is."""
    parts: list[str] = []
    kept = position = 0
    while match := _LOCATION.search(text, position):
        depth = 1
        position = len(text)
        for bracket in _BRACKET.finditer(text, match.end()):
            position = bracket.end()
            if bracket.group() == "\n":
                break
            depth += 1 if bracket.group() == "(" else -1
            if depth == 0:
                parts.append(text[kept : match.start()])
                kept = position
                break
    parts.append(text[kept:])
    return "".join(parts)


def _respell_buffers(text: str) -> str:
    return _BUFFER_LINE.sub(lambda match: _respell(match[0]), text) if _BUFFERS in text else text


def _respell_descriptors(text: str) -> str:
    if "<tensor<" not in text:
        return text
    return _MADE_DESCRIPTOR.sub(r"\1<\2>", _DESCRIPTOR.sub(r"!tt.tensordesc<\1>", text))


def _respell(line: str) -> str:
    operation = _BUFFER.match(line)
    before, colon, types = line.rpartition(" : ")
    if not operation or not types.startswith("!tt.ptr<"):
        return line
    if operation.group(1) == "load_to_local":
        return f"{before}{colon}{types.removeprefix('!tt.ptr')}" if _POINTER_INTO.match(types) else line
    return before + colon + _POINTER_TO_ELEMENT.sub("", types)


_BETWEEN_MODULES = re.compile(r"^(?=// -----)", re.MULTILINE)


class _Aliases:
    """Expands the aliases of a text, which comes in parts."""

    def __init__(self, parts: Iterable[str], size: int) -> None:
        self._definitions: dict[str, str] = {}
        for part in parts:
            self._definitions.update(_ALIAS.findall(f"\n{part}"))
        types = any(name[0] == "!" for name in self._definitions)
        self._use = _ALIAS_USE if types else _ATTRIBUTE_ALIAS_USE
        self._values: dict[str, str] = {}
        self._left = MAX_GROWTH * size + MAX_EXPANDED
        for name in self._definitions:
            self._value(name, ())

    def _value(self, name: str, outer: tuple[str, ...]) -> str:
        if name in outer or len(outer) > 64:
            raise NormalizeError(f"the alias {name} refers to itself, or is nested too deeply")
        if name not in self._values:
            parts = self._use.split(self._definitions[name])
            parts[1::2] = [
                self._value(part, (*outer, name)) if part in self._definitions else part
                for part in parts[1::2]
            ]
            if sum(map(len, parts)) > MAX_EXPANDED:
                raise NormalizeError(f"the alias {name} stands for more than {MAX_EXPANDED} characters")
            self._values[name] = self._joined(parts)
        return self._values[name]

    def _joined(self, parts: list[str]) -> str:
        self._left -= sum(map(len, parts))
        if self._left < 0:
            raise NormalizeError(
                f"with its aliases expanded this text is more than {MAX_GROWTH} times longer"
            )
        return "".join(parts)

    def expand(self, part: str) -> str:
        """The part without definitions, with what they stand for."""
        if not self._definitions:
            return part
        pieces = self._use.split(_ALIAS.sub("\n", f"\n{part}")[1:])
        pieces[1::2] = [self._values.get(piece, piece) for piece in pieces[1::2]]
        return self._joined(pieces)


_DICTIONARY = re.compile(r"\{[^{}\n]*+(?:\{[^{}\n]*+\}[^{}\n]*+)*+\}")
_ENTRY = re.compile(rf"(?:[{HIDDEN}]|[A-Za-z_][\w.$-]*)(?: = .*)?$")
_LONG_DICTIONARY = 1 << 10
"""A dictionary with more characters is long; layouts have a few hundred."""
_SPLITTER = re.compile(r"->|[(\[{<]|[)\]}>]|,")


def _sort_dictionaries(text: str, strings: Strings) -> str:
    return _DICTIONARY.sub(lambda match: _sorted(match[0], strings), text)


def _sorted(dictionary: str, strings: Strings) -> str:
    if " = " not in dictionary:
        return dictionary
    if len(dictionary) < _LONG_DICTIONARY and dictionary.isascii():  # it hides no string
        return _sorted_plain(dictionary)
    return _sorted_dictionary(dictionary, strings.restore)


@lru_cache(maxsize=4096)
def _sorted_plain(dictionary: str) -> str:
    """Kept in a cache, for most kernels share their layouts."""
    return _sorted_dictionary(dictionary, str)


def _sorted_dictionary(dictionary: str, restore: Callable[[str], str]) -> str:
    body = dictionary[1:-1]
    if "{" in body:
        body = _DICTIONARY.sub(lambda match: _sorted_dictionary(match.group(), restore), body)
    if " = " not in body:
        return f"{{{body}}}"
    entries = split_entries(body)
    if not all(map(_ENTRY.match, entries)):
        return f"{{{body}}}"
    entries.sort(key=lambda entry: restore(entry).partition(" = ")[0])  # by value too, or names would decide
    return f"{{{', '.join(entries)}}}"


def split_entries(body: str) -> list[str]:
    """Split at the commas outside brackets. Strings must be hidden."""
    entries: list[str] = []
    depth = start = 0
    for match in _SPLITTER.finditer(body):
        mark = match.group()
        if mark in "([{<":
            depth += 1
        elif mark in ")]}>":
            depth -= 1
        elif mark == "," and depth == 0:
            entries.append(body[start : match.start()].strip())
            start = match.end()
    entries.append(body[start:].strip())
    return entries


def _module_line(line: str, header: dict[str, str], strings: Strings) -> str:
    match = _MODULE.match(line)
    if not match:
        return line
    entries = sorted(map(strings.restore, split_entries(match.group(2))))
    for entry in _IMPLIED.intersection(entries):
        name, _, value = entry.partition(" = ")
        header[f"mlir.{name.strip(chr(34))}"] = value
        entries.remove(entry)
    return "\n".join([f"{match.group(1)} {{", *(f"module attribute {entry}" for entry in entries)])


def _symbols(parts: Sequence[str], strings: Strings) -> dict[str, str]:
    """New names of the kernel and of functions that only the text itself sees."""
    public = [name for part in parts for name in _PUBLIC.findall(part)]
    private = [symbol for part in parts for symbol in _PRIVATE.findall(part)]
    if len(public) != 1 and not private:
        return {}
    used = {name for part in parts for name in _SYMBOL.findall(part)}
    plain = {name: strings.restore(name).strip('"') for name in used}
    if len(set(plain.values())) < len(plain):  # one symbol in two spellings
        raise UnclearError
    fixed = {*public, *(name for name, rest in private if not rest.endswith("{"))}
    named = words(
        strings.restore(line) for part in parts if "asm" in part for line in _ASSEMBLY.findall(part)
    )
    internal = {plain[name]: name for name, _ in private if name not in fixed and plain[name] not in named}
    renamed = rename_functions(internal, plain.values())
    names = {internal[name]: new for name, new in renamed.items()}
    if len(public) == 1 and public[0] not in named and not any(KERNEL in part for part in parts):
        names[public[0]] = KERNEL
    return names
