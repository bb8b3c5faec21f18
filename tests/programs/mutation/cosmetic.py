"""Mutations that change nothing that a text means: every one must be reported as equivalent."""

from __future__ import annotations

import re
import struct
from random import Random

from tests.programs.mutation.editing import Mutation, anywhere, everywhere, on_lines, rename_all

_WORDS = ("tmp", "why // ; not", "line 7", "ret void", "}")


def _append_comment(sign: str) -> Mutation:
    def change(line: str, random: Random) -> str:
        return f"{line} {sign} {random.choice(_WORDS)}"

    return on_lines(r"^[^\"]*\S[^\"]*$", change)


def _blank_line(line: str, random: Random) -> str:
    return random.choice((f"{line}\n", f"\n{line}", f"{line}\n   \n"))


def _trailing(line: str, random: Random) -> str:
    return line + random.choice(("  ", "\t", " \t "))


def _reorder_lines(pattern: str) -> Mutation:
    """Lines that match change places among themselves."""
    compiled = re.compile(pattern)

    def mutate(text: str, random: Random) -> str | None:
        lines = text.split("\n")
        places = [number for number, line in enumerate(lines) if compiled.match(line)]
        contents = [lines[number] for number in places]
        random.shuffle(contents)
        for number, content in zip(places, contents, strict=True):
            lines[number] = content
        changed = "\n".join(lines)
        return changed if changed != text else None

    return mutate


def _shuffle_entries(pattern: str, separator: str) -> Mutation:
    """The entries of the list that the pattern's group 2 holds change places."""
    compiled = re.compile(pattern, re.M)

    def mutate(text: str, random: Random) -> str | None:
        def shuffle(match: re.Match[str]) -> str:
            entries = match.group(2).split(separator)
            random.shuffle(entries)
            return match.group(1) + separator.join(entries) + match.group(3)

        changed = compiled.sub(shuffle, text)
        return changed if changed != text else None

    return mutate


def _respell_floats(text: str, random: Random) -> str | None:
    def spell(match: re.Match[str]) -> str:
        bits = int.from_bytes(struct.pack(">f", float(match.group(2))))
        return f"{match.group(1)}f0x{bits:08X}"

    changed = re.sub(r"(\bfloat )(-?\d\.\d{6}e[+-]\d\d)(?=[,\])\s])", spell, text)
    return changed if changed != text else None


def _name_entry_block(text: str, random: Random) -> str | None:
    changed = re.sub(r"^(define [^\n]*\{)\n(?=  )", r"\1\nentry:\n", text, flags=re.M)
    return changed if changed != text else None


def _inline_alias(text: str, random: Random) -> str | None:
    aliases = re.findall(r"^(#(?!loc)\w+) = ([^\n#]*)$", text, re.M)
    if not aliases:
        return None
    name, value = random.choice(aliases)
    text = text.replace(f"{name} = {value}\n", "", 1)
    return re.sub(rf"{name}(?!\w)", lambda match: value, text)


def _rename_hidden_globals(text: str, random: Random) -> str | None:
    names = re.findall(r"^(@[\w.$]+) = (?:internal|private)", text, re.M)
    if not names:
        return None
    for name in names:
        text = re.sub(rf"{re.escape(name)}(?![\w.$])", f"@renamed.{random.randrange(10**9)}", text)
    return text


def _rename_kernel(pattern: str, use: str) -> Mutation:
    def mutate(text: str, random: Random) -> str | None:
        match = re.search(pattern, text, re.M)
        if not match:
            return None
        uses = re.compile(use.format(name=re.escape(match.group(1))), re.M)
        return uses.sub(f"renamed_{random.randrange(999)}", text)

    return mutate


def _rename_helpers(pattern: str) -> Mutation:
    """All functions that a text defines for itself alone, so that none of them can be another's namesake."""

    def mutate(text: str, random: Random) -> str | None:
        names = dict.fromkeys(re.findall(pattern, text, re.M))
        for name in names:
            new = f"m{random.randrange(10**9)}.f__x" if "." in name else f"m{random.randrange(10**9)}_f__x"
            text = re.sub(
                rf"(?<![\w$]){re.escape(name)}(?=$|_param_|\.(?!\d)|[^\w$.])", new, text, flags=re.M
            )
        return text if names else None

    return mutate


def _comment_between_quotes(sign: str) -> Mutation:
    """What a reader of strings alone would take for one."""

    def change(line: str, random: Random) -> str:
        code = line.lstrip()
        return f'{line[: len(line) - len(code)]}/* {random.randrange(99)}" {sign} */ {code} {sign} of 16"'

    return on_lines(r"^[ \t]+[a-z%][^\"/;]*;?$", change)


def _unused_label(label: str) -> Mutation:
    def change(line: str, random: Random) -> str:
        return f"{label.format(random.randrange(10**6, 10**9))}:\n{line}"

    return on_lines(r"^\t(?:[a-z])", change, 0.05)


MLIR: dict[str, Mutation] = {
    "values renamed": rename_all(r"(?<!negative: )%[A-Za-z0-9_$.-]+", lambda old, n: f"%v{n}"),
    "blocks renamed": rename_all(r"\^bb\d+", lambda old, n: f"^bb{n}"),
    "aliases renamed": rename_all(r"#(?:blocked|shared|mma|linear|tmem|smem)\d*\b(?!\.)", lambda old, n: f"#alias{n}"),
    "alias lines reordered": _reorder_lines(r"#(?!loc)\w+ = "),
    "alias inlined": _inline_alias,
    "unused alias": anywhere(r"\A", "#unused = #ttg.blocked<{order = [0]}>\n"),
    "locations edited": everywhere(r"(\.py\":)(\d+):(\d+)", r"\g<1>1\2:7\3"),
    "locations dropped": everywhere(r" loc\(#loc\d*\)", ""),
    "locations nested": everywhere(r" loc\(#loc(\d*)\)$", r' loc(fused<"(x">[callsite(#loc\1 at "f.py":1:2), unknown])'),
    "paths edited": everywhere(r'"/[\w./-]+/(\w+\.py)"', r'"/elsewhere/) x/\1"'),
    "location lines dropped": everywhere(r"^#loc\d* = [^\n]*\n", ""),
    "comments": _append_comment("//"),
    "indentation": everywhere(r"^ +", "\t "),
    "trailing blanks": on_lines(r".", _trailing),
    "blank lines": on_lines(r".", _blank_line),
    "attributes reordered": _shuffle_entries(r"(\{)([a-z_]+ = \w+ : i32(?:, [a-z_]+ = \w+ : i32)+)(\})", ", "),
    "module attributes reordered": _shuffle_entries(r"^(module attributes \{)([^\n]*)(\} \{)", ", "),
    "helpers renamed": _rename_helpers(r"tt\.func private @([\w.]+)"),
    "kernel renamed": _rename_kernel(r"tt\.func public @(\w+)", r"(?<=@){name}(?=\()"),
}  # fmt: skip

LLIR: dict[str, Mutation] = {
    "locals renamed": rename_all(r"(?<![\w\"])%[0-9]+\b|^\d+(?=:)", lambda old, n: (f"%x.{old.strip('%')}" if old[0] == "%" else f"x.{old}")),
    "metadata renumbered": rename_all(r"(?<![\w\"])!\d+\b", lambda old, n: f"!{n}"),
    "attribute groups renumbered": rename_all(r"(?<![\w\"$])#\d+\b", lambda old, n: f"#{n}"),
    "attributes shuffled": _shuffle_entries(r"^(attributes #\d+ = \{ )([a-z ]+|(?:\"[\w-]+\"=\"[\w,.+-]*\" ?)+)( \})", " "),
    "attribute group lines reordered": _reorder_lines(r"attributes #"),
    "declarations reordered": _reorder_lines(r"declare "),
    "comments": _append_comment(";"),
    "comments dropped": everywhere(r"^;[^\n]*\n|\s+; preds[^\n]*", ""),
    "debug uses dropped": everywhere(r",? !dbg !\d+", ""),
    "debug locations edited": everywhere(r"DILocation\(line: (\d+), column: (\d+)", r"DILocation(line: 1\1, column: 9\2"),
    "debug names edited": everywhere(r'(DI\w+\((?:name|filename|language|producer)[^\n]*?")\w+', r"\1other"),
    "producer": everywhere(r'producer: "triton"', 'producer: "another 9.9"'),
    "source name": everywhere(r'^source_filename = "[^\n]*', 'source_filename = "other; @x"'),
    "identification": everywhere(r'!"clang version[^"]*"', '!"another compiler"'),
    "floats respelled": _respell_floats,
    "entry block named": _name_entry_block,
    "hidden globals renamed": _rename_hidden_globals,
    "helpers renamed": _rename_helpers(r"^define internal [^@\n]*@(\w+\.[\w.]+__[\w.]*)"),
    "comments between quotes": _comment_between_quotes(";"),
    "indentation": everywhere(r"^  ", "\t\t  "),
    "trailing blanks": on_lines(r".", _trailing),
    "blank lines": on_lines(r"^(?!define)", _blank_line),
    "intrinsic attributes": everywhere(r"^declare [^@\n]*?(\w+ @llvm\.[^\n]*?)(?: #\d+)?$", r"declare \1"),
    "kernel renamed": _rename_kernel(r"(?:ptx|amdgpu)_kernel void @(\w+)", r"(?<=@){name}(?=\()"),
    "debug records": on_lines(r"^  %", lambda line, random: f"    #dbg_value(ptr poison, !1, !DIExpression(), !2)\n{line}", 0.05),
    "data layout": everywhere(r'^(target datalayout = "e)-', r"\1-m:e-"),
}  # fmt: skip

PTX: dict[str, Mutation] = {
    "registers renamed": rename_all(r"%(?:rd|r|p|f|rs|fd|h|hh|rq)\d+\b", lambda old, n: re.sub(r"\d+", str(n), old)),
    "labels renamed": rename_all(r"\$L__BB\d+_\d+", lambda old, n: f"$L__BB7_{n}"),
    "lines edited": everywhere(r"^(\t\.loc\t\d+) (\d+)", r"\1 9\2"),
    "lines dropped": everywhere(r"^\t\.loc\t[^\n]*\n", ""),
    "lines added": on_lines(r"^\t[a-z]", lambda line, random: f"\t.loc\t1 {random.randrange(99)} 3\n{line}", 0.1),
    "inlined lines": on_lines(r"^\t[a-z]", lambda line, random: f"\t.loc\t1 3 4, function_name $L__info_string0, inlined_at 1 7 2 // x.py:3\n{line}", 0.1),
    "source path": everywhere(r'^(\t\.file\t\d+ )"[^"]*"', r'\1"/else // where/{ a.py"'),
    "register counts": everywhere(r"(\.reg \.\w+ \t%\w+)<(\d+)>", r"\1<9\2>"),
    "debug sections dropped": lambda text, random: text[: text.find("\t.section\t.debug")] if "\t.section\t.debug" in text else None,
    "comments": _append_comment("//"),
    "comments dropped": everywhere(r"[ \t]*//[^\n]*", ""),
    "block comments": on_lines(r"^\t[a-z][^\"]*;$", lambda line, random: line.replace("\t", "\t/* a } // b */ ", 1)),
    "blanks": everywhere(r"\t", "    "),
    "trailing blanks": on_lines(r".", _trailing),
    "blank lines": on_lines(r".", _blank_line),
    "unused labels": _unused_label("$L__tmp{}"),
    "helpers renamed": _rename_helpers(r"^\.func [^\n]*?(kernels_\$_[\w$]+?)\(?$"),
    "comments between quotes": _comment_between_quotes("//"),
    "kernel renamed": _rename_kernel(r"\.entry (\w+)\(", r"\b{name}(?=\(\n|_param_\d)"),
    "language version": everywhere(r"^\.version \d\.\d", ".version 9.9"),
}  # fmt: skip

AMDGCN: dict[str, Mutation] = {
    "labels renamed": rename_all(r"\.LBB\d+_\d+", lambda old, n: f".LBB9_{n}"),
    "lines edited": everywhere(r"^(\t\.loc\t\d+) (\d+)", r"\1 9\2"),
    "lines dropped": everywhere(r"^\t\.loc\t[^\n]*\n", ""),
    "lines added": on_lines(r"^\ts_", lambda line, random: f"\t.loc\t1 {random.randrange(99)} 3 is_stmt 0 ; x\n{line}", 0.1),
    "source path": everywhere(r'^(\t\.file\t\d+) "[^"]*"', r'\1 "/else ; where"'),
    "comments": _append_comment(";"),
    "comments dropped": everywhere(r"[ \t]*;[^\n]*", ""),
    "blanks": everywhere(r"\t", "    "),
    "trailing blanks": on_lines(r"^\t", _trailing),
    "blank lines": on_lines(r"^\t[a-z]", _blank_line),
    "unused labels": _unused_label(".Ltmp{}"),
    "helpers renamed": _rename_helpers(r"^\t\.type\t(kernels\.[\w.]+),@function"),
    "comments between quotes": _comment_between_quotes(";"),
    "comment lines": on_lines(r"^\t[sv]_", lambda line, random: f"# it's /* {random.randrange(99)}\n{line} // \"", 0.1),
    "debug data": everywhere(r"^(\t\.(?:byte|short|long)\t)(\d+)(?= +;)", r"\g<1>1\2"),
    "unwind directives": everywhere(r"^\t\.cfi_[^\n]*\n", ""),
    "debug sections dropped": everywhere(r"^\t\.section\t\.debug_[^\n]*\n(?:(?!\t\.(?:section|amdgpu_metadata|text))[^\n]*\n)*", ""),
    "producer": everywhere(r'^(\t\.ident\t)"[^\n]*', r'\1"another"'),
    "sizes dropped": everywhere(r"^\t\.size\t[^\n]*Lfunc_end[^\n]*\n", ""),
    "target spelling": everywhere(r'amd(?:gcn|gpu[\w.]*)-amd-amdhsa-(?:unknown)?-?(?=gfx)', "amdgcn-other-amdhsa--"),
    "kernel renamed": _rename_kernel(r"\.amdhsa_kernel (\w+)", r"(?<![\w.$/\"]){name}(?=$|[:,\s]|\.kd$)"),
}  # fmt: skip

SASS: dict[str, Mutation] = {
    "addresses": everywhere(r"^( +/\*)0(?=[0-9a-f]{3}\*/)", r"\g<1>7"),
    "encodings": everywhere(r"^( +/\*[0-9a-f]{4,}\*/[^\n]*;)", r"\1 /* 0x000fe200078e0000 */"),
    "labels renamed": rename_all(r"\.L_x_\d+", lambda old, n: f".L_x_{n}"),
    "padding": everywhere(r"^( +/\*[0-9a-f]{4,}\*/ +)NOP;\n", ""),
    "comments": everywhere(r"^//[^\n]*", "// other"),
    "blanks": everywhere(r"  +", " \t "),
    "trailing blanks": on_lines(r".", _trailing),
    "alignment": everywhere(r"\.align\s+\d+", ".align 32"),
}  # fmt: skip

BY_DIALECT = {"mlir": MLIR, "llir": LLIR, "ptx": PTX, "amdgcn": AMDGCN, "sass": SASS}
