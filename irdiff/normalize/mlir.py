r"""Canonical form of MLIR text in Triton's dialects: ttir, ttgir, glir and the `source` stage.

Rules (before → after; why the meaning is kept; source: MLIR Language Reference, sections in brackets)
- `… loc("a.py":3:1)`, `#loc7 = loc(…)`, `// …` → dropped: locations and comments are not part of an
  operation's meaning [Location]. One exception is of Triton's making: `tt.assert` passes the file
  and line of its location to the device. That change shows in the LLVM IR.
- `%x_4`, `^bb3`, `%arg7` → `%4`, `^b0`, numbered where they are defined, anew in each function: names
  of values and blocks are not kept by the compiler [Identifiers]. Scopes are those of regions: sibling
  regions use a name twice, and an isolated region may hide an outer one.
- `#blocked1` → its definition; the lines `#blocked1 = …` dropped: an alias is an abbreviation of the
  printer [Attribute Value Aliases].
- `{b = 1, a = 2}` → `{a = 2, b = 1}`, also for the attributes of the module, each on its own line:
  dictionaries have no order [Dictionary Attribute]. Only where every entry is `name = value` or a unit
  attribute and at least one has a value.
- the name of the one public function → `@__kernel__`: a symbol nothing in the text calls.
- module attribute `"ttng.two-ctas" = false` → header: printed since 3.9; absent means false
  (TritonNvidiaGPU dialect).
- runs of blanks and indentation → one blank, none.

Kept on purpose: every other module attribute (warps, CTAs, target: launch ABI), argument attributes,
types, layouts, strings, constants and the order of operations.
"""

from __future__ import annotations

import re

from irdiff.errors import NormalizeError
from irdiff.normalize.canonical import Rows, unrecognized
from irdiff.normalize.lexing import KERNEL, STRING, collapse_spaces, drop_c_comments

MAX_EXPANDED = 1 << 20
"""Characters an alias may stand for; real layouts have a few hundred."""

_SIMPLE_LOCATION = re.compile(rf"({STRING})|[ ]?(?<![\w.])loc\(#loc\d*\)")
_NESTED_LOCATION = re.compile(rf"({STRING})|[ ]?(?<![\w.])loc\(")
_BRACKET = re.compile(rf"{STRING}|[()]")
_LOCATION_ALIAS = re.compile(r"^#loc\w* = loc\([^\n]*$", re.M)
_ALIAS = re.compile(r"^([#!][A-Za-z_][\w.$-]*) = ([^\n]*)$", re.M)
_ALIAS_USE = re.compile(rf"({STRING})|[#!][A-Za-z_][\w$-]*+(?![\w.<])")
_RECOGNIZED = re.compile(r"^[ \t]*(?:module\b|\"?(?:builtin\.module|(?:tt|llvm|func|gpu)\.func)\b)", re.M)
_MODULE = re.compile(r"^(module(?: @[\w.$]+)?)(?: attributes \{(.*)\})? \{$")
_PUBLIC = re.compile(r"\b(?:tt|llvm|func)\.func public @([\w.$]+)(?=\()")
_IMPLIED = {'"ttng.two-ctas" = false', "ttng.two-ctas = false"}


def rows(ir: str, text: str) -> Rows:
    text = strip(text)
    if not _RECOGNIZED.search(text):
        raise unrecognized(ir, "a module or a function")
    text = _Names().rename(_rename_kernel(_sort_dictionaries(text)))
    header: dict[str, str] = {}
    body = [_module_line(line, header) for line in _expand_aliases(text).split("\n")]
    return Rows(body=body, tail=[], header=header)


def strip(text: str) -> str:
    """The text without locations, comments and superfluous blanks: equal here, equal canonically."""
    text = _LOCATION_ALIAS.sub("", text)
    text = _SIMPLE_LOCATION.sub(r"\1", text)
    if "loc(" in text:
        text = _drop_nested_locations(text)
    if "//" in text:
        text = drop_c_comments(text)
    return collapse_spaces(text)


def _drop_nested_locations(text: str) -> str:
    parts: list[str] = []
    position = 0
    for match in _NESTED_LOCATION.finditer(text):
        if match.start() < position or match.group(1):
            continue
        depth = 1
        for bracket in _BRACKET.finditer(text, match.end(), text.find("\n", match.end()) % (len(text) + 1)):
            depth += {"(": 1, ")": -1}.get(bracket.group(), 0)
            if depth == 0:
                parts.append(text[position : match.start()])
                position = bracket.end()
                break
    parts.append(text[position:])
    return "".join(parts)


def _expand_aliases(text: str) -> str:
    definitions = dict(_ALIAS.findall(text))
    if not definitions:
        return text
    expanded: dict[str, str] = {}

    def expand(name: str, outer: tuple[str, ...]) -> str:
        if name in outer or len(outer) > 64:
            raise NormalizeError(f"the alias {name} is defined by itself, or too deeply")
        if name not in expanded:
            value = replace(definitions[name], (*outer, name))
            if len(value) > MAX_EXPANDED:
                raise NormalizeError(f"the alias {name} stands for more than {MAX_EXPANDED} characters")
            expanded[name] = value
        return expanded[name]

    def replace(value: str, outer: tuple[str, ...]) -> str:
        return _ALIAS_USE.sub(
            lambda match: expand(match.group(), outer) if match.group() in definitions else match.group(),
            value,
        )

    text = _ALIAS.sub("", text)
    values = {name: expand(name, ()) for name in definitions}
    if sum(len(values.get(name, "")) for name in _ALIAS_USE.findall(text) if name) > 1 << 28:
        raise NormalizeError("the aliases of this text stand for more than 256 MB")
    return _ALIAS_USE.sub(lambda match: values.get(match.group(), match.group()), text)


_DICTIONARY = re.compile(rf"({STRING})|\{{(?:[^{{}}\"\n]|{STRING}|\{{(?:[^{{}}\"\n]|{STRING})*+\}})*+\}}")
_ENTRY = re.compile(rf"(?:{STRING}|[A-Za-z_][\w.$-]*)(?: = .*)?$")
_SPLITTER = re.compile(rf"{STRING}|->|[(\[{{<]|[)\]}}>]|,")


def _sort_dictionaries(text: str) -> str:
    cache: dict[str, str] = {}

    def sort(match: re.Match[str]) -> str:
        found = match.group()
        if found not in cache:
            cache[found] = found if match.group(1) else _sorted_dictionary(found)
        return cache[found]

    return _DICTIONARY.sub(sort, text)


def _sorted_dictionary(dictionary: str) -> str:
    body = _DICTIONARY.sub(
        lambda match: match.group(1) or _sorted_dictionary(match.group()), dictionary[1:-1]
    )
    entries = split_entries(body)
    if not any(" = " in entry for entry in entries) or not all(map(_ENTRY.match, entries)):
        return "{" + body + "}"
    return "{" + ", ".join(sorted(entries)) + "}"


def split_entries(body: str) -> list[str]:
    """Split at the commas outside brackets and strings."""
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


def _module_line(line: str, header: dict[str, str]) -> str:
    if not line.startswith("module"):
        return line
    match = _MODULE.match(line)
    if not match or not match.group(2):
        return line
    entries = sorted(split_entries(match.group(2)))
    for entry in _IMPLIED.intersection(entries):
        name, _, value = entry.partition(" = ")
        header[f"mlir.{name.strip(chr(34))}"] = value
        entries.remove(entry)
    return "\n".join([f"{match.group(1)} {{", *(f"module attribute {entry}" for entry in entries)])


def _rename_kernel(text: str) -> str:
    names = _PUBLIC.findall(text)
    if len(names) != 1 or KERNEL in text:
        return text
    symbol = re.compile(rf"({STRING})|@{re.escape(names[0])}(?![\w.$-])")
    return symbol.sub(lambda match: match.group(1) or f"@{KERNEL}", text)


_NAME = re.compile(rf"({STRING}|%[\w.$-]+|\^[\w.$-]+)")
_RESULTS = re.compile(r"%[\w.$-]+(?::\d+)?(?:, %[\w.$-]+(?::\d+)?)* = ")
_FUNCTION = re.compile(r'"?(?:tt|llvm|func|gpu)\.func\b')
_ARGUMENTS = re.compile(r'\^|"?(?:tt|llvm|func|gpu)\.func\b|\w+\(%')


class _Names:
    """Renames values and blocks with the scopes of MLIR's regions."""

    def __init__(self) -> None:
        self._visible: dict[str, str] = {}
        self._scopes: list[dict[str, str | None]] = [{}]
        """For each open region the names it defines, with what they meant outside."""
        self._pending: set[str] = set()
        """Used before their definition: their definition takes the number they have."""
        self._values = self._blocks = 0

    def rename(self, text: str) -> str:
        return "\n".join(map(self._rename_line, text.split("\n")))

    def _rename_line(self, line: str) -> str:
        if not line:
            return line
        if line[0] == "}" or line.startswith("})"):
            self._close()
        if _FUNCTION.match(line):
            self._open_function()
        parts = _NAME.split(line)
        results = _RESULTS.match(line)
        first = 1
        if results:
            first += 2 * sum(1 for _ in _NAME.finditer(results.group()))
            for index in range(1, first, 2):
                parts[index] = self._define(parts[index])
        if line[-1] == "{":
            self._scopes.append({})
        defines_arguments = _ARGUMENTS.match(line) is not None
        for index in range(first, len(parts), 2):
            name, after = parts[index], parts[index + 1]
            if name[0] == '"':
                continue
            if self._is_definition(name, parts[index - 1], after, index, defines_arguments):
                parts[index] = self._define(name)
            else:
                parts[index] = self._visible.get(name) or self._expect(name)
        return "".join(parts)

    @staticmethod
    def _is_definition(name: str, before: str, after: str, index: int, defines_arguments: bool) -> bool:
        if name[0] == "^":
            return index == 1 and not before
        return after.startswith(" = ") or (defines_arguments and after.startswith(": "))

    def _open_function(self) -> None:
        self._visible.clear()
        self._pending.clear()
        self._scopes = [{}]
        self._values = self._blocks = 0

    def _close(self) -> None:
        if len(self._scopes) == 1:
            return
        for name, outer in self._scopes.pop().items():
            if outer is None:
                self._visible.pop(name, None)
            else:
                self._visible[name] = outer

    def _define(self, name: str) -> str:
        scope = self._scopes[-1]
        if name in self._pending and name in scope:
            self._pending.discard(name)
            return self._visible[name]
        scope.setdefault(name, self._visible.get(name))
        self._visible[name] = canonical = self._number(name)
        return canonical

    def _expect(self, name: str) -> str:
        self._pending.add(name)
        self._scopes[-1].setdefault(name, None)
        self._visible[name] = canonical = self._number(name)
        return canonical

    def _number(self, name: str) -> str:
        if name[0] == "^":
            self._blocks += 1
            return f"^b{self._blocks - 1}"
        self._values += 1
        return f"%{self._values - 1}"
