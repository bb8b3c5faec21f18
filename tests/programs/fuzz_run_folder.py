"""Fuzzes what reads a run: `python -m tests.programs.fuzz_run_folder --seconds 600 [--seed 0]`.

Takes small valid runs (folder, zip, tar, tar.gz, tar.zst) and breaks them:
bits, cuts, doubled parts, other values in JSON, other names in archives. Whatever comes out must be read, or
refused with RunFolderError; every report of what was read must render; nothing may be written outside of the
folder that was given. Ends with 1, and keeps the input, at the first that does anything else.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import datetime
import gzip
import io
import json
import random
import re
import resource
import struct
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import zstandard
from markdown_it import MarkdownIt
from rich.console import Console

from irdiff import gate
from irdiff.errors import RunFolderError
from irdiff.gate import outputs, policy
from irdiff.gate.outputs import ReleaseRun
from irdiff.github import checks
from irdiff.model import Run, Verdict
from irdiff.report import html, markdown, templates, terminal
from irdiff.run import run_archive, run_folder
from irdiff.store import sha256
from irdiff.timing import timing_file
from tests.unit import runs

_TAG = re.compile(r"<([a-zA-Z!][\w-]*)")
_OUR_TAGS = {
    "h1", "h2", "h3", "h4", "p", "ul", "ol", "li", "a", "b", "strong", "em", "sub", "code", "pre", "br", "hr", "table",
    "thead", "tbody", "tr", "th", "td", "details", "summary", "blockquote", "!--",
}  # fmt: skip
ROOT = Path(__file__).parents[2]
ARTIFACT = b"module { tt.func @kernel() }\n" * 50
MEMORY_BYTES = 4 << 30
TODAY = datetime.date(2026, 1, 2)
INTERESTING = [
    None, True, -1, 0, 1e308, 10**25, "", "\x00", "x" * 100_000, [], {}, [[[]]], "a" * 64, "unchanged",
    "\x1b]8;;https://evil.example\x07x", "</script><script>alert(1)</script>", "@octocat #1 [x](javascript:x) | `",
    "../../../etc/passwd", "\u202e\ufeff\u2028",
]  # fmt: skip
NAMES = (
    "run.json", "timing.json", "../evil", "/evil", "a/../evil", "./run.json", "x/run.json", "\\evil", "C:\\x", "a" * 300,
    "artifacts/aa/" + "b" * 62, "artifacts/../../evil", "\x00", "-",
)  # fmt: skip


def _runs() -> list[Run]:
    names = [f"f/w{n}:l@{target}" for n in range(4) for target in ("sm_90", "gfx942")]
    cases = [
        runs.case(name, list(Verdict)[n % 9], base={"registers": 1}, head={"registers": 2.5})
        for n, name in enumerate(names)
    ]
    changed = tuple(case.id for case in cases if case.verdict is Verdict.CHANGED)
    return [
        runs.run(*cases, groups=(runs.group("0123456789abcdef", *changed),)),
        runs.run(runs.case()),
    ]


def _mutate_json(rows: Any, chance: random.Random) -> Any:
    places: list[tuple[Any, Any]] = []
    pending = [rows]
    while pending:
        value = pending.pop()
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        places += [(value, key) for key in keys]
        pending += [value[key] for key in keys if isinstance(value[key], (dict, list)) and value[key]]
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice(places)
        with contextlib.suppress(KeyError, IndexError):  # an earlier edit took it away
            match chance.randrange(4):
                case 0:
                    holder[key] = chance.choice(INTERESTING)
                case 1:
                    del holder[key]
                case 2:
                    other, name = chance.choice(places)
                    holder[key] = copy.deepcopy(other[name])
                case 3 if isinstance(holder, dict):
                    holder[chance.choice(["x", "\u202e", "schema", "../x", "a" * 64])] = holder[key]
    return rows


def _mutate_bytes(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[at : at + 1] = bytes(byte ^ 1 << chance.randrange(8) for byte in data[at : at + 1])
            case 1:
                del data[at : at + chance.randint(1, 64)]
            case 2:
                data[at:at] = data[at : at + chance.randint(1, 256)]
            case 3:
                number = chance.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40])
                data[at : at + 8] = struct.pack("<Q", number)
            case 4:
                del data[at:]
    return bytes(data)


def _packed(members: dict[str, bytes], kind: str, chance: random.Random) -> bytes:
    if chance.random() < 0.4:
        members = {**members, chance.choice(NAMES): chance.randbytes(chance.randint(0, 50))}
    packed = io.BytesIO()
    if kind == "zip":
        method = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
        with zipfile.ZipFile(packed, "w", method) as archive:
            for name, content in members.items():
                info = zipfile.ZipInfo(name)
                info.external_attr = chance.choice([0o100644, 0o120777, 0o010644, 0]) << 16
                archive.writestr(info, content)
        return packed.getvalue()
    form = chance.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
    with tarfile.open(fileobj=packed, mode="w", format=form) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if chance.random() < 0.05:
                member.type, member.linkname = (
                    chance.choice([tarfile.SYMTYPE, tarfile.LNKTYPE]),
                    "/etc/passwd",
                )
            tar.addfile(member, io.BytesIO(content))
    whole = packed.getvalue()
    return {"tar": bytes, "tar.gz": gzip.compress, "tar.zst": zstandard.compress}[kind](whole)


class Fuzzer:
    """One seed: the same inputs in the same order."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.documents = list(map(run_folder.dump, _runs()))
        self.rules = policy.load(ROOT / "reports" / "irdiff-policy.toml")
        self.parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        for environment in (templates.markdown(), templates.html()):
            environment.auto_reload = False  # somebody may edit them meanwhile
        self.seen: Counter[str] = Counter()
        self.last: tuple[str, bytes] = ("", b"")

    def once(self) -> None:
        kind = self.chance.choice(["json", "json", "bytes", "artifact", "zip", "tar", "tar.gz", "tar.zst"])
        self.seen[f"{kind}: {self._attempt(kind)}"] += 1

    def _attempt(self, kind: str) -> str:
        document = self.chance.choice(self.documents)
        if kind == "json":
            text = json.dumps(_mutate_json(json.loads(document), self.chance))
            return self._read("run.json", text.encode(errors="surrogatepass"))
        if kind == "bytes":
            return self._read("run.json", _mutate_bytes(document, self.chance))
        if kind == "artifact":
            return self._artifact()
        digest = sha256(ARTIFACT)
        members = {"run.json": document, f"artifacts/{digest[:2]}/{digest[2:]}": zstandard.compress(ARTIFACT)}
        packed = _packed(members, kind, self.chance)
        if self.chance.random() < 0.7:
            packed = _mutate_bytes(packed, self.chance)
        return self._read("run.packed", packed)

    def _read(self, name: str, content: bytes) -> str:
        self.last = (name, content)
        path = self.folder / "in" / name
        path.write_bytes(content)
        try:
            with run_archive.opened(path) as folder:
                run = run_folder.load(folder)
                timing_file.load(folder if folder.is_dir() else folder.parent)
        except RunFolderError:
            return "refused"
        self._render(run)
        return "read"

    def _artifact(self) -> str:
        digest = sha256(ARTIFACT)
        path = self.folder / "in" / "artifacts" / digest[:2] / digest[2:]
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _mutate_bytes(zstandard.compress(ARTIFACT), self.chance)
        self.last = ("artifact", content)
        path.write_bytes(content)
        try:
            found = run_folder.artifact(self.folder / "in", digest)
        except RunFolderError:
            return "refused"
        assert found == ARTIFACT, "an artifact of another content was handed out"
        return "read"

    def _render(self, run: Run) -> None:
        text = markdown.render(run, self.folder / "in")
        outcome = gate.evaluate(run, self.rules, today=TODAY)
        part = ReleaseRun(run=run, folder=self.folder / "in", timing=None, outcome=outcome)
        comments = [text, outputs.markdown(outcome), outputs.render([part])]
        on_terminal = io.StringIO()
        terminal.show(run, self.folder, Console(file=on_terminal, width=120))
        others = [outputs.text(outcome), outputs.as_json(outcome), on_terminal.getvalue()]
        others += [outputs.junit(outcome)]
        if self.chance.random() < 0.1:  # the slow one
            others.append(html.render(run, self.folder / "in"))
        for shown in [*comments, *others]:
            shown.encode()
            assert "\x1b" not in shown
            assert "\u202e" not in shown
        for shown in comments:
            tags = set(_TAG.findall(self.parser.render(shown)))
            assert tags <= _OUR_TAGS, f"foreign markup: {tags - _OUR_TAGS}"
        checks.annotate(run, "corpus")


def _listing(folder: Path) -> set[Path]:
    """All but what lies where the inputs do."""
    return {path for path in folder.rglob("*") if path.relative_to(folder).parts[0] != "in"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with tempfile.TemporaryDirectory(prefix="irdiff-fuzz-") as name:
        folder = Path(name)
        (folder / "in").mkdir()
        tempfile.tempdir = str(folder / "in")
        fuzzer = Fuzzer(chosen.seed, folder)
        before, started, count = _listing(folder), time.monotonic(), 0
        try:
            while time.monotonic() - started < chosen.seconds:
                fuzzer.once()
                count += 1
                if count % 500 == 0:
                    assert _listing(folder) == before, "something was written outside"
        except Exception:
            traceback.print_exc()
            kept = Path.cwd() / f"fuzz-failure-{chosen.seed}-{count}"
            kept.write_bytes(fuzzer.last[1])
            print(f"input {count} of seed {chosen.seed} ({fuzzer.last[0]}) is kept in {kept.name}")
            return 1
    for what, times in sorted(fuzzer.seen.items()):
        print(f"{times:9} {what}")
    spent_s = time.monotonic() - started
    print(f"{count:9} inputs in {spent_s:.0f} s, seed {chosen.seed}: no crash, nothing written outside")
    return 0


if __name__ == "__main__":
    sys.exit(main())
