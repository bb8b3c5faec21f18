r"""Canonical form of LLVM IR.

The rules are lexical: they work on the text as it is. Texts that still differ are compared once more as one
LLVM reads and prints them (`llvm_reader`), under the same rules; `equivalent` sees to it that the two forms
are not mixed.

Rules (before → after; why the meaning is kept; source: LLVM Language Reference)
- `; …`, `source_filename`, `!dbg !7`, `#dbg_value(…)`, `call void @llvm.dbg.*`, `!DI…` nodes,
  `llvm.dbg.cu`, `llvm.ident` → dropped: debug information and the producer's name.
- `%17`, `%x.i`, `3:` → `%0`, `%0:` numbered by first use in a function: names of locals are free. The
  label of the entry block is dropped: an unnamed one prints none. Names of types stay. So do all names of
  locals in a text with `blockaddress` or `uselistorder_bb`, which name a block outside of its function.
- `#3` → `#1f0c…`, a digest of the sorted attributes, listed at the end: groups abbreviate sets.
- `!22` → `!0` by first use, listed at the end; locations are taken out of `llvm.loop` nodes: numbers of
  metadata are free. `distinct` stays.
- `@printfFormat_3 = private …` → `@g0`, in the order of the text: names of private and internal
  variables are not visible outside. Their order and content stay: they are laid out so.
- the name of the one kernel → `@__kernel__`: a symbol nothing calls.
- `define internal … @kernels.f__fp32(` → `@function__0`: not visible outside either (`symbols`). Other
  functions keep their names, and so does what has a comdat of its name or is named in inline assembly.
- `declare … @llvm.*` → dropped: LLVM sets the attributes of intrinsics itself. Other declarations are
  sorted: they have no order.
- `f0x3F800000`, `1.0` → the bits by value (`llvm_floats`).
- `target triple`, `target datalayout`, `!llvm.module.flags` that concern debug information,
  `!nvvmir.version`, `!opencl.ocl.version` → header. Other module flags can reach the code and stay.

A text in which one name is spelled in two ways (`%x` and `%"x"`, `%"\61"` and `%a`), as LLVM never prints it,
is compared as it is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Set
from hashlib import sha256

from irdiff.ir.canonical import Numbering, Rows, unrecognized
from irdiff.ir.lexing import HIDDEN, KERNEL, LLVM_IR, Strings, UnclearError, collapse_spaces
from irdiff.ir.llir.llvm_floats import spell_floats
from irdiff.ir.symbols import rename_functions, words

_DEBUG = re.compile(r", !dbg !\d+")
_OTHER_DEBUG = tuple(re.compile(rf"{before} !(?:dbg|DIAssignID) !\d+") for before in (",", ""))
"""With a comma before it and without, for a pattern is found quickly that begins with constant text."""
_DEBUG_LINE = re.compile(r"\n(?:#dbg_\w+\(|(?:tail )?call void @llvm\.dbg\.)[^\n]*")
_DEBUG_NODE = re.compile(r"\n!\d+ = (?:distinct )?!DI[A-Za-z]+\([^\n]*")
_COMPILE_UNITS = re.compile(r"^!llvm\.dbg\.cu = [^\n]*", re.M)
_SYMBOL = f"(?:[-\\w.$]++|[{HIDDEN}])"
_TOKEN = re.compile(rf"([%@!#](?:(?<=[%@]){_SYMBOL}|(?<=!)\d+|(?<=#)\w+))")
"""Matches a set of characters first, and what stands before it afterwards: this makes the search fast."""
_QUOTED_NAME = re.compile(r"[^\x00-\ud7ff](?:(?<=[%@$].)|(?<=\n.):\n)")
"""Matches a range of characters first, and what stands before it afterwards: this makes the search fast."""
_NAME = re.compile(rf"[%@$]{_SYMBOL}|^{_SYMBOL}:$", re.M)
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")
_LABEL = re.compile(rf"\n({_SYMBOL}):(?=\n|\Z)")
_NAMES_BLOCKS = ("blockaddress", "uselistorder_bb")
_NODE = re.compile(r"^!(\d+) = ([^\n]*)$", re.M)
_NODE_NUMBER = re.compile(r"^!(\d+) = ", re.M)
_NODE_LIST = re.compile(r"^(!\d+ = (?:distinct )?)(!\{[^\n]*)", re.M)
_OPERAND = re.compile(r"(?:, )?(!\d++)")
_LEADING_COMMA = re.compile(r"(?<=\{), ")
_GROUP = re.compile(r"\nattributes (#\w+) = \{ ?([^\n]*?) ?\}(?=\n|$)")
_QUOTED = r'"[^"\n]*+"'
_ATTRIBUTE = re.compile(rf"{_QUOTED}(?:={_QUOTED})?|[\w.]+(?:\((?:[^()\n]|\([^()\n]*\))*+\))?(?:=[\w.]+)?")
_ASSEMBLY = re.compile(
    rf"asm (?<=\basm )(?:(?:sideeffect|alignstack|inteldialect|unwind) ){{0,4}}+([{HIDDEN}])"
)
_HIDDEN_GLOBAL = re.compile(rf"\n@({_SYMBOL}) = (?:private|internal) ")
_CANONICAL_GLOBAL = re.compile(r"@(g\d+)(?![-\w.$])")
_TYPE = re.compile(rf"\n(%{_SYMBOL}) = type ")
_DEFINED = re.compile(rf"\ndefine ([^@\n]*+)@({_SYMBOL})\(")
_GLOBAL_NAME = re.compile(rf"@({_SYMBOL})")
_CONVENTION = re.compile(r"\b(?:ptx_kernel|amdgpu_kernel|spir_kernel) ")
_HIDDEN_LINKAGE = re.compile(r"(?:private|internal) ")
_COMDAT = re.compile(rf"\n\$({_SYMBOL}) = comdat ")
_NAMED = re.compile(r"^!([A-Za-z_][\w.]*) = !\{(.*)\}$")
_TARGET = re.compile(rf"^target (datalayout|triple) = ([{HIDDEN}])$", re.M)
_INTRINSIC = re.compile(r"declare [^@\n]*@llvm\.")
_INERT_FLAGS = ("Debug Info Version", "Dwarf Version")
_HEADER_NODES = {"nvvmir.version", "opencl.ocl.version", "opencl.spir.version"}
_DROPPED_NODES = {"llvm.dbg.cu", "llvm.ident"}
_RECOGNIZED = re.compile(
    r"^(?:define |declare |target (?:triple|datalayout) |@[^\n]* = |!\d+ = |attributes #)", re.M
)


def rows(stage: str, text: str) -> Rows:
    strings = Strings(LLVM_IR)
    text = _strip(strings.read(text))
    if not _RECOGNIZED.search(text):
        raise unrecognized(stage, "a definition, a declaration or a target")
    _check_names(text, strings)
    return _Module(spell_floats(text), strings).rows()


def _strip(text: str) -> str:
    """Without debug uses and indentation."""
    text = _DEBUG_NODE.sub("\n", collapse_spaces(_DEBUG.sub("", text)))
    if "!dbg" in text or "!DIAssignID" in text:
        for pattern in _OTHER_DEBUG:
            text = pattern.sub("", text)
    if "#dbg_" in text or "@llvm.dbg." in text:
        text = _DEBUG_LINE.sub("\n", text)
    return text


def _check_names(text: str, strings: Strings) -> None:
    """Names are distinguished by their spelling, so each must have one only."""
    if text.isascii() or not _QUOTED_NAME.search(f"\n{text}\n"):
        return
    names = {name.strip("%:") for name in _NAME.findall(text)}
    if len({_meant(strings.restore(name)) for name in names}) < len(names):
        raise UnclearError


def _meant(name: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name.replace('"', ""))


def without_debug(text: str) -> str:
    """The text without debug information and comments, still LLVM IR, floats in LLVM 22's way.

    Raises UnclearError.
    """
    strings = Strings(LLVM_IR)
    text = _COMPILE_UNITS.sub("", _strip(strings.read(text)))
    nodes = {f"!{number}" for number in _NODE_NUMBER.findall(text)}

    def repair(match: re.Match[str]) -> str:
        return match.group(1) + _without_unknown(match.group(2), nodes)

    return strings.restore(spell_floats(_NODE_LIST.sub(repair, text)))


def _without_unknown(definition: str, nodes: Container[str]) -> str:
    """Take references to nodes of debug information, which are gone by now, out of a list of nodes."""
    left = _OPERAND.sub(lambda match: match.group() if match[1] in nodes else "", definition)
    return left if left == definition else _LEADING_COMMA.sub("", left)


def _prefix(types: Set[str]) -> str:
    """A prefix for the numbers of locals that no name of a type begins with."""
    prefix = "%"
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in types):
        prefix += "v"
    return prefix


class _Module:
    def __init__(self, text: str, strings: Strings) -> None:
        self._text = f"\n{text}"
        self._strings = strings
        self._types = set(_TYPE.findall(self._text))
        self._prefix = _prefix(self._types)
        self._keeps_locals = any(word in text for word in _NAMES_BLOCKS)
        self._fixed = {*_COMDAT.findall(self._text), *self._named_in_assembly()}
        self._globals = self._name_variables() | self._name_functions()
        self._nodes = Numbering("!")
        self._definitions: dict[str, str] = {}
        self._named: list[tuple[str, str]] = []
        self._groups: dict[str, tuple[str, str]] = {}
        self._used_groups: dict[str, str] = {}
        self._header: dict[str, str] = {}
        self._tail: list[tuple[int, str]] = []

    def _name_variables(self) -> dict[str, str]:
        variables = dict.fromkeys(_HIDDEN_GLOBAL.findall(self._text))
        hidden = [name for name in variables if name not in self._fixed]
        names = {f"@{name}": f"@g{number}" for number, name in enumerate(hidden)}
        return names if set(_CANONICAL_GLOBAL.findall(self._text)) <= set(hidden) else {}

    def _name_functions(self) -> dict[str, str]:
        defined = _DEFINED.findall(self._text)
        kernels = [name for before, name in defined if _CONVENTION.search(before)]
        kernels = kernels or [name for _, name in defined]
        only = len(kernels) == 1 and kernels[0] not in self._fixed and KERNEL not in self._text
        names = {kernels[0]: KERNEL} if only else {}
        fixed = self._fixed.union(kernels)
        internal = {
            self._plain(name): name
            for before, name in defined
            if name not in fixed and _HIDDEN_LINKAGE.match(before)
        }
        if internal:
            others = map(self._plain, _GLOBAL_NAME.findall(self._text))
            names |= {internal[name]: new for name, new in rename_functions(internal, others).items()}
        return {f"@{name}": f"@{new}" for name, new in names.items()}

    def _named_in_assembly(self) -> set[str]:
        assembly = set(_ASSEMBLY.findall(self._text))
        if not assembly:
            return set()
        named = words(map(self._strings.restore, assembly))
        return {name for name in _GLOBAL_NAME.findall(self._text) if self._plain(name) in named}

    def _plain(self, name: str) -> str:
        return self._strings.restore(name).strip('"')

    def rows(self) -> Rows:
        self._read_groups()
        body: list[str] = []
        text = self._text
        position = 1
        while (start := text.find("\ndefine ", position - 1) + 1) > 0:
            body += self._top_level(text[position:start], len(body))[:-1]
            end = text.find("\n}\n", start) + 2
            position = end if end > 1 else len(text)
            body += self._function(text[start:position])
            position += 1
        body += self._top_level(text[position:], len(body))
        self._tail = sorted(
            ((number, self._strings.restore(line)) for number, line in self._tail),
            key=lambda numbered: numbered[1],
        )
        self._add_named()
        self._add_nodes()
        groups = sorted(self._used_groups.items())
        self._tail += [(0, f"attributes {name} = {{ {content} }}") for name, content in groups]
        return Rows(body=body, tail=self._tail, header=self._header).restored(self._strings)

    def _read_groups(self) -> None:
        for name, hidden in _GROUP.findall(self._text):
            content = self._strings.restore(hidden)
            attributes = _ATTRIBUTE.findall(content)
            recognized = " ".join(attributes) == content
            ordered = " ".join(sorted(attributes)) if recognized else content
            self._groups[name] = (f"#{sha256(ordered.encode()).hexdigest()[:12]}", ordered)

    def _function(self, text: str) -> list[str]:
        head = text.find("\n")
        entry = _LABEL.match(text, head) if head >= 0 else None
        if entry and not self._keeps_locals:
            text = f"{text[:head]}\n{text[entry.end() :]}"
        parts = _TOKEN.split(_LABEL.sub(r"\n%\1:", text))
        parts[1::2] = map(self._names(parts[1::2]).__getitem__, parts[1::2])
        return "".join(parts).split("\n")

    def _names(self, names: list[str]) -> dict[str, str]:
        """New names of one function by old ones."""
        distinct = dict.fromkeys(names)
        if self._keeps_locals:
            return {name: name if name[0] == "%" else self._name(name) for name in distinct}
        canonical = {name: self._name(name) for name in distinct if name[0] != "%"}
        local = [name for name in distinct if name[0] == "%" and name not in self._types]
        canonical.update(zip(local, [f"{self._prefix}{number}" for number in range(len(local))], strict=True))
        canonical.update((name, name) for name in self._types)
        return canonical

    def _name(self, name: str) -> str:
        """The same for names that mean the same in the whole text."""
        if name[0] == "@":
            return self._globals.get(name, name)
        if name[0] == "!":
            return self._nodes[name]
        if name not in self._groups:
            return name
        canonical, attributes = self._groups[name]
        self._used_groups[canonical] = attributes
        return canonical

    def _top_level(self, text: str, start: int) -> list[str]:
        body: list[str] = []
        for number, line in enumerate(text.split("\n"), start + 1):
            body.append("" if not line or self._take(line, number) else self._rename(line))
        return body

    def _take(self, line: str, number: int) -> bool:
        """Returns true for a line that has no place in the body: it is dropped, or goes to header or tail."""
        if line[0] == "!":
            node, named = _NODE.match(line), _NAMED.match(line)
            if node:
                self._definitions[f"!{node.group(1)}"] = node.group(2)
            elif named:
                self._named.append((named.group(1), named.group(2)))
            return bool(node or named)
        if line.startswith("declare "):
            if not _INTRINSIC.match(line):
                self._tail.append((number, self._rename(line)))
            return True
        target = _TARGET.match(line)
        if target:
            self._header[f"llvm.{target.group(1)}"] = self._strings.restore(target.group(2))[1:-1]
        group = line.startswith("attributes ") and line.split(" ", 2)[1] in self._groups
        return bool(target or group or line.startswith("source_filename"))

    def _rename(self, line: str) -> str:
        parts = _TOKEN.split(line)
        parts[1::2] = [name if name[0] == "%" else self._name(name) for name in parts[1::2]]
        return "".join(parts)

    def _add_named(self) -> None:
        for name, content in sorted(self._named):
            nodes = re.findall(r"!\d+", content)
            if name in _DROPPED_NODES:
                continue
            if name in _HEADER_NODES:
                self._header[f"llvm.{name}"] = ", ".join(self._definition(node) for node in nodes)
                continue
            if name == "llvm.module.flags":
                nodes = self._take_inert_flags(nodes)
            if nodes or not content:
                self._tail.append((0, f"!{name} = !{{{', '.join(self._nodes[node] for node in nodes)}}}"))

    def _take_inert_flags(self, flags: list[str]) -> list[str]:
        kept = []
        for flag in flags:
            inert = next((name for name in _INERT_FLAGS if f'"{name}"' in self._definition(flag)), None)
            if inert:
                self._header[f"llvm.flag {inert}"] = self._definition(flag)
            else:
                kept.append(flag)
        return kept

    def _definition(self, node: str) -> str:
        return self._strings.restore(self._definitions.get(node, node))

    def _add_nodes(self) -> None:
        waiting = deque(self._nodes)
        done: set[str] = set()
        while waiting:
            node = waiting.popleft()
            if node in done:
                continue
            done.add(node)
            definition = _without_unknown(self._definitions.get(node, "!{}"), self._definitions.keys())
            waiting.extend(name for name in _TOKEN.findall(definition) if name[0] == "!")
            self._tail.append((0, f"{self._nodes[node]} = {self._rename(definition)}"))
