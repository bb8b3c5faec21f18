r"""Canonical form of LLVM IR.

Two forms. `llvm-VERSION`: the text is read, verified and printed by the LLVM inside llvmlite, which
upgrades what older versions spelled otherwise, and the rules below are applied to that. `lexical`: the
rules alone, where this LLVM cannot read the text. Forms must not be mixed: `equivalent` sees to it.

Rules (before → after; why the meaning is kept; source: LLVM Language Reference)
- `; …`, `source_filename`, `!dbg !7`, `#dbg_value(…)`, `call void @llvm.dbg.*`, `!DI…` nodes,
  `llvm.dbg.cu`, `llvm.ident` → dropped: debug information and the producer's name.
- `%17`, `%x.i`, `3:` → `%0`, `%0:` numbered by first use in a function: names of locals are free. The
  label of the entry block is dropped: an unnamed one prints none. Names of types stay.
- `#3` → `#1f0c…`, a digest of the sorted attributes, listed at the end: groups abbreviate sets.
- `!22` → `!0` by first use, listed at the end; locations are taken out of `llvm.loop` nodes: numbers of
  metadata are free. `distinct` stays.
- `@printfFormat_3 = private …` → `@g0`, in the order of the text: names of private and internal
  variables are not visible outside. Their order and content stay: they are laid out so.
- the name of the one kernel → `@__kernel__`: a symbol nothing calls. Other functions keep their names.
- `declare … @llvm.*` → dropped: LLVM sets the attributes of intrinsics itself. Other declarations are
  sorted: they have no order.
- `f0x3F800000`, `1.0` → the bits by value (`llvm_floats`).
- `target triple`, `target datalayout`, `!llvm.module.flags` that concern debug information,
  `!nvvmir.version`, `!opencl.ocl.version` → header. Other module flags can reach the code and stay.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Set
from hashlib import sha256

from irdiff.normalize.canonical import Numbering, Rows, unrecognized
from irdiff.normalize.lexing import KERNEL
from irdiff.normalize.llvm_floats import spell_floats

_STRING = r'"[^"\n]*+"'
_DEBUG = re.compile(r",? !(?:dbg|DIAssignID) !\d+")
_DEBUG_IN_STRING = re.compile(r'"[^"\n]*!(?:dbg|DIAssignID) [^"\n]*"')
_STRING_OR_DEBUG = re.compile(rf"({_STRING})|,? !(?:dbg|DIAssignID) !\d+")
_DEBUG_LINE = re.compile(r"^[ \t]*(?:#dbg_\w+\(|(?:tail )?call void @llvm\.dbg\.)[^\n]*$", re.M)
_DEBUG_NODE = re.compile(r"^!\d+ = (?:distinct )?!DI[A-Za-z]+\([^\n]*$", re.M)
_COMMENT_LINE = re.compile(r"^;[^\n]*|[ ]+; preds = [^\n]*", re.M)
_COMMENT = re.compile(rf'^([^"\n;]*+(?:{_STRING}[^"\n;]*+)*+);[^\n]*', re.M)
_INDENT = re.compile(r"^[ \t]+|[ \t]+$", re.M)
_STRING_OR_SPACES = re.compile(rf"({_STRING})|[ \t]{{2,}}|\t")
_SYMBOL = rf"(?:[-\w.$]+|{_STRING})"
_TOKEN = re.compile(rf"([%@]{_SYMBOL}|{_STRING}|!\d+|(?<![\w.])#\w+)")
_LABEL = re.compile(rf"^({_SYMBOL}):", re.M)
_NODE = re.compile(r"^!(\d+) = ([^\n]*)\n?", re.M)
_NODE_NUMBER = re.compile(r"^!(\d+) = ", re.M)
_NODE_LINE = re.compile(r"^(!\d+ = (?:distinct )?)(!\{[^\n]*)", re.M)
_COMPILE_UNITS = re.compile(r"^!llvm\.dbg\.cu = [^\n]*", re.M)
_GROUP = re.compile(r"^attributes (#\w+) = \{ ?([^\n]*?) ?\}$", re.M)
_ATTRIBUTE = re.compile(rf"{_STRING}(?:={_STRING})?|[\w.]+(?:\((?:[^()\n]|\([^()\n]*\))*+\))?(?:=[\w.]+)?")
_GLOBAL = re.compile(rf"^(@{_SYMBOL}) = ", re.M)
_HIDDEN = re.compile(rf"^(@{_SYMBOL}) = (?:private|internal) ", re.M)
_TYPE = re.compile(rf"^(%{_SYMBOL}) = type ", re.M)
_KERNEL = re.compile(
    rf"^define [^@\n]*\b(?:ptx_kernel|amdgpu_kernel|spir_kernel) [^@\n]*(@{_SYMBOL})\(", re.M
)
_DEFINE = re.compile(r"^define [^\n]*$", re.M)
_DEFINED = re.compile(rf"^define [^@\n]*(@{_SYMBOL})\(", re.M)
_END = re.compile(r"^\}[ \t]*$", re.M)
_NAMED = re.compile(r"^!([A-Za-z_][\w.]*) = !\{(.*)\}$")
_TARGET = re.compile(r'^target (datalayout|triple) = "(.*)"$')
_TARGETS = re.compile(_TARGET.pattern, re.M)
_INERT_FLAG = re.compile(r'!"(?:Debug Info Version|Dwarf Version)"')
_HEADER_NODES = {"nvvmir.version", "opencl.ocl.version", "opencl.spir.version"}
_DROPPED_NODES = {"llvm.dbg.cu", "llvm.ident"}
_RECOGNIZED = re.compile(
    r"^(?:define |declare |target (?:triple|datalayout) |@[^\n]* = |!\d+ = |attributes #)", re.M
)


def rows(text: str) -> Rows:
    """The lexical form."""
    text = strip(text)
    if not _RECOGNIZED.search(text):
        raise unrecognized("llir", "a definition, a declaration or a target")
    return _Module(spell_floats(text)).rows()


def targets(text: str) -> dict[str, str]:
    """Triple and data layout as the text has them, for the header."""
    return {f"llvm.{kind}": value for kind, value in _TARGETS.findall(text)}


def strip(text: str) -> str:
    """The text without comments, debug uses and indentation: equal here, equal canonically."""
    text = _DEBUG_NODE.sub("", text)
    text = (_STRING_OR_DEBUG.sub(r"\1", text)) if _DEBUG_IN_STRING.search(text) else _DEBUG.sub("", text)
    text = _COMMENT_LINE.sub("", text)
    if ";" in text:
        text = _COMMENT.sub(r"\1", text)
    text = _DEBUG_LINE.sub("", text)
    text = _INDENT.sub("", text)
    if "  " in text or "\t" in text:
        text = _STRING_OR_SPACES.sub(lambda match: match.group(1) or " ", text)
    return text


def without_debug(text: str) -> str:
    """The text without debug information and comments, still LLVM IR that can be read."""
    text = _COMPILE_UNITS.sub("", strip(text))
    known = {f"!{number}" for number in _NODE_NUMBER.findall(text)}

    def repair(match: re.Match[str]) -> str:
        return match.group(1) + _without_unknown(match.group(2), known)

    return _NODE_LINE.sub(repair, text)


def _without_unknown(definition: str, known: Set[str]) -> str:
    """Take references to nodes of debug information, which are gone by now, out of a list of nodes."""
    for token in _TOKEN.findall(definition):
        if token[0] == "!" and token not in known:
            definition = re.sub(rf", {token}(?!\d)|{token}(?!\d)(?:, )?", "", definition, count=1)
    return definition


class _Names(dict[str, str]):
    """What each token of one function becomes."""

    def __init__(self, module: _Module) -> None:
        super().__init__(module.types)
        self._module = module
        self._locals = Numbering("%v" if module.numbered_types else "%")

    def __missing__(self, token: str) -> str:
        kind = token[0]
        if kind == "%":
            canonical = self._locals[token]
        elif kind == "@":
            canonical = self._module.globals.get(token, token)
        elif kind == "#":
            canonical = self._module.group(token)
        elif kind == "!":
            canonical = self._module.nodes[token]
        else:
            canonical = token
        self[token] = canonical
        return canonical


class _Module:
    def __init__(self, text: str) -> None:
        self.text = text
        self.types = {name: name for name in _TYPE.findall(text)}
        self.numbered_types = any(name[1:].isdigit() for name in self.types)
        self.globals = {name: f"@g{number}" for number, name in enumerate(_HIDDEN.findall(text))}
        if set(self.globals.values()).intersection(_GLOBAL.findall(text)) - self.globals.keys():
            self.globals = {}
        self._name_kernel()
        self.nodes = Numbering("!")
        self._definitions: dict[str, str] = {}
        self._groups: dict[str, tuple[str, str]] = {}
        self._used_groups: dict[str, str] = {}
        self._header: dict[str, str] = {}
        self._tail: list[tuple[int, str]] = []

    def _name_kernel(self) -> None:
        kernels = _KERNEL.findall(self.text) or _DEFINED.findall(self.text)
        if len(kernels) == 1 and KERNEL not in self.text:
            self.globals[kernels[0]] = f"@{KERNEL}"

    def group(self, name: str) -> str:
        if name not in self._groups:
            return name
        canonical, attributes = self._groups[name]
        self._used_groups[canonical] = attributes
        return canonical

    def rows(self) -> Rows:
        self._read_groups()
        body: list[str] = []
        position = 0
        named: list[tuple[str, str]] = []
        for match in _DEFINE.finditer(self.text):
            if match.start() < position:
                continue
            body += self._top_level(self.text[position : match.start()], len(body), named)[:-1]
            end = _END.search(self.text, match.end())
            position = end.end() if end else len(self.text)
            body += self._function(self.text[match.start() : position])
            position += 1
        body += self._top_level(self.text[position:], len(body), named)
        self._tail.sort(key=lambda numbered: numbered[1])
        self._add_named(named)
        self._add_nodes()
        self._tail += [
            (0, f"attributes {name} = {{ {self._used_groups[name]} }}") for name in sorted(self._used_groups)
        ]
        return Rows(body=body, tail=self._tail, header=self._header)

    def _read_groups(self) -> None:
        for name, content in _GROUP.findall(self.text):
            attributes = _ATTRIBUTE.findall(content)
            recognized = " ".join(attributes) == content
            ordered = " ".join(sorted(attributes)) if recognized else content
            self._groups[name] = (f"#{sha256(ordered.encode()).hexdigest()[:12]}", ordered)

    def _function(self, text: str) -> list[str]:
        lines = text.split("\n", 2)
        if len(lines) > 2 and _LABEL.fullmatch(lines[1]):
            text = f"{lines[0]}\n\n{lines[2]}"
        parts = _TOKEN.split(_LABEL.sub(r"%\1:", text))
        parts[1::2] = map(_Names(self).__getitem__, parts[1::2])
        return "".join(parts).split("\n")

    def _top_level(self, text: str, start: int, named: list[tuple[str, str]]) -> list[str]:
        if "\n!" in text or text.startswith("!"):
            self._definitions.update((f"!{number}", node) for number, node in _NODE.findall(text))
        body: list[str] = []
        for number, line in enumerate(text.split("\n"), start + 1):
            if not line or _NODE.match(line) or _GROUP.match(line) or line.startswith("source_filename"):
                body.append("")
            elif line.startswith("declare "):
                body.append("")
                if not re.match(r"declare [^@\n]*@llvm\.", line):
                    self._tail.append((number, self._rename(line)))
            elif match := _TARGET.match(line):
                self._header[f"llvm.{match.group(1)}"] = match.group(2)
                body.append("")
            elif match := _NAMED.match(line):
                named.append((match.group(1), match.group(2)))
                body.append("")
            else:
                body.append(self._rename(line))
        return body

    def _rename(self, line: str) -> str:
        parts = _TOKEN.split(line)
        names = _Names(self)
        parts[1::2] = [token if token[0] == "%" else names[token] for token in parts[1::2]]
        return "".join(parts)

    def _add_named(self, named: list[tuple[str, str]]) -> None:
        for name, content in sorted(named):
            if name in _DROPPED_NODES:
                continue
            members = re.findall(r"!\d+", content)
            if name in _HEADER_NODES:
                self._header[f"llvm.{name}"] = ", ".join(
                    self._definitions.get(node, node) for node in members
                )
                continue
            kept = []
            for node in members:
                definition = self._definitions.get(node, "")
                if name == "llvm.module.flags" and _INERT_FLAG.search(definition):
                    self._header[f"llvm.flag {definition}"] = "set"
                else:
                    kept.append(node)
            if kept:
                self._tail.append((0, f"!{name} = !{{{', '.join(self.nodes[node] for node in kept)}}}"))

    def _add_nodes(self) -> None:
        waiting = deque(self.nodes)
        done: set[str] = set()
        while waiting:
            node = waiting.popleft()
            if node in done:
                continue
            done.add(node)
            definition = _without_unknown(self._definitions.get(node, "!{}"), self._definitions.keys())
            waiting.extend(
                token for token in _TOKEN.findall(definition) if token[0] == "!" and token not in done
            )
            self._tail.append((0, f"{self.nodes[node]} = {self._rename(definition)}"))
