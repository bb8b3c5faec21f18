"""Rewrites of real texts: those that keep the meaning, and the share that is proved, and those that change it,
of which none may be.

`python -m tests.programs.effect_rewrites [SEEDS [RUN]]` makes each kind of rewrite of each artifact of 3.9.0, or
of each changed case of a run folder up to 2,200 lines, and prints both figures by stage. A mutation that is
taken for the same is printed whole.
"""

from __future__ import annotations

import itertools
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from irdiff import effects
from irdiff.model import Meaning, Verdict
from irdiff.run import run_folder
from irdiff.texts import canonicalize
from tests.programs.mutation.artifacts import of_stage

Rewrite = Callable[[str, list[str], random.Random], list[str]]
STAGES = ("ptx", "llir", "amdgcn")
_TARGETS = ("sm_90", "gfx942")
_MAX_LINES = 2200
_REGISTER = {"ptx": r"%(?:rd|rs|r|p|f|fd)\d+\b", "llir": r"%\d+\b", "amdgcn": r"\b[vs]\d+\b"}
_PLAIN = {
    "ptx": r"(?:add|sub|mul|and|or|xor|shl|shr|mad|fma|max|min|cvt|selp|mov|setp|ex2|bfe)\.\S+ %[a-z]+\d+, [^{}\[\]]*;$",
    "llir": r"%\d+ = (?:add|sub|mul|and|or|xor|shl|lshr|fadd|fsub|fmul|icmp|[sz]ext|trunc|getelementptr|bitcast) .*",
    "amdgcn": r"v_(?:add_u32|sub_u32|and_b32|or_b32|xor_b32|lsh[lr]rev_b32|mul_f32|add_f32|sub_f32|max_f32)_e32 v\d+, [\w.]+(?:, v\d+)?$",
}
_COMMUTES = {
    "ptx": r"((?:add|mul\.lo|and|or|xor|max|min)\.\w+ %\w+, )(%\w+), (%\w+)(;)",
    "llir": r"(%\d+ = (?:add|mul|and|or|xor|fadd|fmul) (?:\w+ )*)(%\d+), (%\d+)()",
    "amdgcn": r"(v_(?:add_u32|and_b32|or_b32|xor_b32|mul_f32|add_f32|max_f32)_e32 v\d+, )(v\d+), (v\d+)()",
}
_ADDRESSES: dict[str, list[tuple[str, Callable[[re.Match[str], int], list[str]]]]] = {
    "ptx": [
        (r"mad\.wide\.s32 (%rd\d+), (%r\d+), (\d+), (%rd\d+);",
         lambda m, n: [f"mul.wide.s32 %rd{n}, {m[2]}, {m[3]};", f"add.s64 {m[1]}, {m[4]}, %rd{n};"]),
        (r"shl\.b32 (%r\d+), (%r\d+), (\d);", lambda m, _: [f"mul.lo.s32 {m[1]}, {m[2]}, {1 << int(m[3])};"]),
        (r"(.*global.*)\[ ?(%rd\d+) ?\+ ?(\d+) ?\](.*)",
         lambda m, n: [f"add.s64 %rd{n}, {m[2]}, {m[3]};", f"{m[1]}[ %rd{n} + 0 ]{m[4]}"]),
    ],
    "llir": [
        (r"(%\d+) = getelementptr (?:inbounds nuw )?i8, (ptr addrspace\(3\)) (%\d+), i32 (\d+)",
         lambda m, n: [f"%{n} = getelementptr i8, {m[2]} {m[3]}, i32 8",
                       f"{m[1]} = getelementptr i8, {m[2]} %{n}, i32 {int(m[4]) - 8}"]),
        (r"(%\d+) = shl (?:nuw |nsw )*i32 (%\d+), (\d)", lambda m, _: [f"{m[1]} = mul i32 {m[2]}, {1 << int(m[3])}"]),
        (r"(%\d+ = )or disjoint( i\d+ .*)", lambda m, _: [f"{m[1]}add{m[2]}"]),
    ],
    "amdgcn": [
        (r"(ds_read_b\d+ v\S+, )(v\d+)() offset:(\d+)|(ds_write_b\d+ )(v\d+)(, v\S+) offset:(\d+)",
         lambda m, n: [f"v_add_u32_e32 v{n}, {int(m[4] or m[8]):#x}, {m[2] or m[6]}",
                       f"{m[1] or m[5]}v{n}{m[7] or ''}"]),
        (r"v_lshl_add_u32 (v\d+), (v\d+), (\d+), (v\d+)",
         lambda m, n: [f"v_lshlrev_b32_e32 v{n}, {m[3]}, {m[2]}", f"v_add_u32_e32 {m[1]}, v{n}, {m[4]}"]),
    ],
}  # fmt: skip


def renamed(stage: str, lines: list[str], dice: random.Random) -> list[str]:
    if stage == "llir":
        return [re.sub(r"%(\d+)\b", r"%v\1x", re.sub(r"^(\d+):", r"v\1x:", line)) for line in lines]
    text = "\n".join(lines)
    names = sorted(set(re.findall(_REGISTER[stage], text)))
    if stage == "amdgcn":  # those of a range stay together, and v0 is given
        spans = re.findall(r"\b([vs])\[(\d+):(\d+)\]", text)
        bound = {f"{kind}{n}" for kind, a, b in spans for n in range(int(a), int(b) + 1)} | {"v0"}
        names = [name for name in names if name[0] == "v" and name not in bound]
    new: dict[str, str] = {}
    for _, members in itertools.groupby(sorted(names), key=lambda name: name.rstrip("0123456789")):
        own = list(members)
        new |= dict(zip(own, dice.sample(own, len(own)), strict=True))
    return [re.sub(_REGISTER[stage], lambda m: new.get(m.group(), m.group()), line) for line in lines]


def scheduled(stage: str, lines: list[str], dice: random.Random) -> list[str]:
    found = lines[:]
    for i in dice.sample(range(len(lines) - 1), len(lines) - 1):
        one, other = found[i], found[i + 1]
        if any(
            line.startswith("s_nop") for line in found[max(i - 20, 0) : i + 20]
        ):  # so many states, and there
            continue
        if re.match(_PLAIN[stage], one) and re.match(_PLAIN[stage], other):
            mine, its = (re.findall(_REGISTER[stage], line) for line in (one, other))
            if mine and its and mine[0] not in its and its[0] not in mine:
                found[i], found[i + 1] = other, one
    return found


def commuted(stage: str, lines: list[str], dice: random.Random) -> list[str]:
    return [re.sub(_COMMUTES[stage], r"\1\3, \2\4", line) if dice.random() < 0.5 else line for line in lines]


def readdressed(stage: str, lines: list[str], dice: random.Random) -> list[str]:
    found: list[str] = []
    for number, written in enumerate(lines):
        line = re.sub(r"^\.amdhsa_(next_free_vgpr|accum_offset) \d+", r".amdhsa_\1 99999", written)
        rows = ((re.fullmatch(pattern, line), make) for pattern, make in _ADDRESSES[stage])
        match, make = next(((m, make) for m, make in rows if m), (None, None))
        free = number + (600 if stage == "amdgcn" else 10**6)
        found += make(match, free) if match and make and dice.random() < 0.5 else [line]
    return found


def reordered(stage: str, lines: list[str], dice: random.Random) -> list[str]:
    label = {"ptx": r"\$L\d+:$", "llir": r"%?[\w.]+:$", "amdgcn": r"\.L\d+:$"}[stage]
    ends = {
        "ptx": r"bra\.uni|ret|trap|}",
        "llir": r"br|ret|unreachable|\]|switch",
        "amdgcn": r"s_(?:branch|endpgm)",
    }
    start = next((i for i, line in enumerate(lines) if re.match(label, line)), len(lines))
    stop = {"ptx": "}", "llir": "}", "amdgcn": ".section"}[stage]
    depth, last = 0, start
    for last in range(start, len(lines)):
        depth += (lines[last] == "{") - (lines[last] == "}")
        if lines[last].startswith(stop) and depth <= 0:
            break
    blocks: list[list[str]] = [lines[:start]]
    for line in lines[start:last]:
        blocks += [[]] if re.match(label, line) else []
        blocks[-1].append(line)
    jump = {"ptx": "bra.uni {};", "amdgcn": "s_branch {}"}.get(stage)
    for block, following in itertools.pairwise(blocks):
        if jump and not re.match(ends[stage], block[-1]):
            block.append(jump.format(following[0].rstrip(":")))
    return [
        line for block in (blocks[0], *dice.sample(blocks[1:], len(blocks) - 1)) for line in block
    ] + lines[last:]


REWRITES: dict[str, Rewrite] = {
    "registers renamed": renamed,
    "independent neighbours exchanged": scheduled,
    "operands that commute exchanged": commuted,
    "addresses computed in another way": readdressed,
    "blocks in another order": reordered,
}

# mutations: the first group of a pattern is replaced in one line

_MUTATIONS: dict[str, dict[str, list[tuple[str, str | Callable[[re.Match[str]], str]]]]] = {
    "ptx": {
        "operands exchanged": [
            (r"^((?:sub|shl|shr|div|setp\.[lg][te])\.\S+ %\w+, )(%\w+), (%\w+);", r"\1\3, \2;"),
            (r"^(selp\.\w+ %\w+, )([^,]+), ([^,]+),", r"\1\3, \2,"),
            (r"^((?:fma|mad)\.\S+ %\w+, )([^,]+), ([^,]+), ([^,]+);", r"\1\4, \3, \2;"),
        ],
        "predicate negated": [(r"@%", "@!%"), (r"@!%", "@%")],
        "constant": [(r"(?<=[ ,])(\d+)(?=[;,\]]| \])", lambda m: str(int(m[1]) + 1))],
        "dropped": [(r"^(?:bar|fence|mbarrier|cp\.async\.\w+_group|wgmma\.(?:fence|wait|commit)|st|red)\b.*;$", "")],
        "width": [(r"^((?:@!?%p\d+ )?(?:ld|st)\S*\.)b32", r"\1b16"), (r"m64n(\d+)k16", r"m64n\1k8"), (r"\.rn\b", ".rz")],
        "register": [(r"(?<=, )%r(\d+)(?=[,;])", lambda m: f"%r{int(m[1]) // 2}")],
    },
    "llir": {
        "operands exchanged": [
            (r"(= (?:sub|shl|lshr|ashr|[su]div|fsub|fdiv|icmp [su][lg][te])(?: [a-z]\w*)* )(%\d+), (%\d+)", r"\1\3, \2"),
            (r"(= select i1 %\d+, )(\w+ [^,]+), (\w+ [^,]+)$", r"\1\3, \2"),
        ],
        "predicate negated": [(r"br i1 (%\d+), (label %\S+), (label %\S+)", r"br i1 \1, \3, \2"), (r"@\$", "@!$")],
        "constant": [
            (r"^(.* = and .*, )(\d+)$", lambda m: f"{m[1]}{int(m[2]) // 2}"),  # one more may be a bit that is 0
            (r"^(?!.* = and )(.*, )(\d+)$", lambda m: f"{m[1]}{int(m[2]) + 1}"), (r"(i32 )(\d+)$", lambda m: f"{m[1]}{int(m[2]) + 1}")],
        "dropped": [(r"^(?:tail call void .*(?:barrier|bar\.|fence|wait)|fence|store ).*", "")],
        "width": [(r"(= load )i32", r"\1i16"), (r"icmp slt", "icmp sle"), (r"fadd", "fsub"), (r"maxnum", "minnum")],
        "register": [(r"(= (?:add|sub|mul|and|or|xor|shl|icmp \w+) .*, )%(\d+)$", lambda m: f"{m[1]}%{max(int(m[2]) - 1, 0)}")],
    },
    "amdgcn": {
        "operands exchanged": [
            (r"^((?:v_sub_\w+|v_lshl_add_u32|v_cmp_[lg][te]_\w+|v_cndmask_b32_e32) (?:v\d+|vcc), )(v\d+|\d+), (v\d+)", r"\1\3, \2"),
            (r"^(s_(?:sub_u32|lshl_b32|cmp_[lg][te]_i32) )(s\d+), (s\d+)", r"\1\3, \2"),
        ],
        "predicate negated": [(r"execz", "execnz"), (r"scc0", "scc1"), (r"scc1", "scc0"), (r"s_and_saveexec", "s_andn2_saveexec")],
        "constant": [(r"(?<=, )(\d+)(?=,|$)", lambda m: str(int(m[1]) + 1)), (r"offset:(\d+)", lambda m: f"offset:{int(m[1]) + 4}")],
        "dropped": [(r"^(?:s_barrier|s_waitcnt|buffer_inv|buffer_wbl2|s_nop|s_or_b64 exec|\w+_store|ds_write).*", "")],
        "width": [(r"_dwordx2\b", "_dwordx3"), (r"_short\b", "_byte"), (r"v_add_f32", "v_sub_f32")],
        "register": [(r"(?<=, )v(\d+)$", lambda m: f"v{int(m[1]) + 1}"), (r"(?<=, )s(\d+)$", lambda m: f"s{int(m[1]) + 1}")],
    },
}  # fmt: skip


def mutated(stage: str, kind: str, lines: list[str], dice: random.Random) -> list[str]:
    rows = _MUTATIONS[stage][kind]
    for number in dice.sample(range(len(lines)), len(lines)):
        for pattern, new in (
            rows if not lines[number].startswith((".", "-", "amdhsa", "declare", "!")) else ()
        ):
            line = re.sub(pattern, new, lines[number], count=1)
            if line != lines[number]:
                return (
                    [*lines[:number], line, *lines[number + 1 :]]
                    if line
                    else lines[:number] + lines[number + 1 :]
                )
    return lines


@cache
def texts(stage: str) -> list[tuple[str, list[str]]]:
    rows = (each for each in of_stage(stage, release="3.9.0") if each.target in _TARGETS)
    return [(each.name, list(canonicalize(stage, each.text).lines)) for each in rows]


def texts_of_run(stage: str, run: Path) -> list[tuple[str, list[str]]]:
    digests = {
        side[stage].digest: case.id
        for case in run_folder.load(run).cases
        for side in case.artifacts
        if case.verdict is Verdict.CHANGED and stage in side
    }
    contents = ((name, run_folder.artifact(run, digest) or b"") for digest, name in digests.items())
    rows = ((name, list(canonicalize(stage, text.decode()).lines)) for name, text in contents)
    return [(name, lines) for name, lines in rows if len(lines) <= _MAX_LINES]


def tried(
    stage: str, kinds: dict[str, Rewrite], seeds: int, run: Path | None = None
) -> Iterator[tuple[str, str, bool, list[str], list[str]]]:
    for name, base in texts_of_run(stage, run) if run else texts(stage):
        for kind, rewrite in kinds.items():
            for seed in range(seeds):
                head = rewrite(stage, base, random.Random(f"{name}{kind}{seed}"))
                if head != base:
                    yield (
                        name,
                        kind,
                        effects.compare(stage, base, head).kind is Meaning.SAME,
                        base,
                        head,
                    )


def mutations(stage: str) -> dict[str, Rewrite]:
    def of_kind(kind: str) -> Rewrite:
        return lambda stage, lines, dice: mutated(stage, kind, lines, dice)

    return {kind: of_kind(kind) for kind in _MUTATIONS[stage]}


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    run = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    for stage, (words, kinds_of, times) in itertools.product(
        STAGES, (("rewrites", lambda _: REWRITES, 1), ("mutations", mutations, 3))
    ):
        proved: Counter[str] = Counter()
        made: Counter[str] = Counter()
        for name, kind, is_proved, base, head in tried(stage, kinds_of(stage), seeds * times, run):
            made[kind] += 1
            proved[kind] += is_proved
            if is_proved and words == "mutations":
                at = next(i for i in range(len(base)) if base[i] != head[i])
                print(f"  {name}, {kind}, line {at + 1}: {base[at]}  →  {head[at]}")
        share = 100 * proved.total() / max(made.total(), 1)
        print(
            f"{stage}: {proved.total()} of {made.total()} {words} taken for the same ({share:.0f} %)",
            dict(proved),
        )


if __name__ == "__main__":
    main()
