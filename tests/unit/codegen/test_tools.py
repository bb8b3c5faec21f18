"""What a tool's results are filed under, how a text is spelled for it, what it is asked for, and why it gives none."""

import tomllib
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from irdiff.backends.nvidia import code_generation, ptxas
from irdiff.codegen import readable
from irdiff.codegen.readable import Abilities
from irdiff.codegen.tool_compiler import ToolCompiler
from irdiff.codegen.tool_runner import TRANSIENT, Runner, ToolFailed, failure_of
from irdiff.config import load
from irdiff.ir.llir.spellings import rewritten
from irdiff.model import Assembler, Failure, FailureKind
from irdiff.process import EndedCommand
from irdiff.resolve.substitute import Substitute
from irdiff.resolve.tools import Tool, ToolKind
from irdiff.store import Store
from tests.unit import runs
from tests.unit.golden import golden

PTX = b"//\n.version 8.7\n.target sm_90a\n"
LLIR = b"define void @k(ptr captures(none) %0) {\n  %1 = icmp samesign ult i32 %0, 4\n}\n"
FLAGS = ("-v", "--gpu-name=sm_90a")
SIDE = runs.side()
RELEASE = replace(SIDE.toolchain, programs={"/t/ptxas": "p"})
ABLE = {"old": Abilities(unreadable=("captures(none)", "icmp samesign"), newest_isa=84, flags=())}
NEW = Abilities(unreadable=(), newest_isa=99, flags=code_generation.SWITCHES)


def tool(kind=ToolKind.LLVM, digest="llvm"):
    path, is_ptxas = Path(f"/{digest}"), kind is ToolKind.ASSEMBLER
    programs = {"ptxas": path} if is_ptxas else {"llc": Path("/llc")}
    backends = frozenset({"cuda"} if is_ptxas else {"cuda", "hip"})
    words = {"spec": f"{kind}:/{digest}", "version": f"{kind} {digest}", "digest": digest}
    return Tool(kind=kind, path=path, programs=programs, backends=backends, notes=(), **words)


def substitute(one, origin=RELEASE):
    return Substitute(tool=one, origin=origin, corpus=SIDE.corpus, assembler=None)


@dataclass
class Made:
    """A compiler with tools, over workers that give every launch the same texts."""

    store: Store
    calls: list[tuple[str, Any]] = field(default_factory=list)
    """Each run of a tool, with the text that it read."""
    compiler: Any = None

    def compile(self, *_, attempt=None):
        texts = runs.kept(self.store, {"ttgir": b"module {}", "llir": LLIR, "ptx": PTX})
        return runs.compiled(texts, metadata={"shared": 4}, assembler=Assembler(digest="p", flags=FLAGS))

    def outcome(self, of, target="sm_90", **more):
        launch = runs.launch(f"matmul/tma:fp16@{target}")
        return self.compiler.compile(
            replace(SIDE, toolchain=of.toolchain()), launch, runs.target(target), **more
        )

    def content(self, outcome, stage):
        return self.store.get(outcome.artifacts[stage].digest) or b""


@pytest.fixture
def make(tmp_path, monkeypatch):
    made = Made(Store(tmp_path / "store"))

    def generate(runner, one, text, call, folder):
        made.calls.append((one.digest, text))
        if one.digest == "broken":
            raise ToolFailed(Failure(kind=FailureKind.ERROR, stage="ptx", message="no"))
        return PTX + one.digest.encode() + str(runner.randomized).encode()

    def assemble(_runner, _assembler, program, _name, flags, folder):
        text = (folder / "kernel.ptx").read_bytes()
        made.calls.append((str(program), text.decode()))
        return " ".join((str(program), *flags)).encode() + text, "registers"

    monkeypatch.setattr(readable, "of_tool", lambda one, *_: ABLE.get(one.digest, NEW))
    monkeypatch.setattr(Runner, "generate", generate)
    monkeypatch.setattr(Runner, "assemble", assemble)

    def with_tools(*substitutes):
        made.compiler = ToolCompiler(made, substitutes, made.store, load(cache=tmp_path), reuse=True)
        return made

    return with_tools


def test_a_result_is_kept_for_this_text_tool_and_options_alone(make):
    one, other = substitute(tool()), substitute(tool(digest="other"))
    made = make(one, other)
    for side, count in ((one, 2), (one, 2), (other, 4)):
        made.outcome(side)
        assert len(made.calls) == count


def test_a_side_is_compiled_again_by_its_tool_and_not_taken_from_the_store(make):
    side = substitute(tool())
    made = make(side)
    first, again = made.outcome(side), made.outcome(side, attempt=0)
    assert again.artifacts["ptx"].digest != first.artifacts["ptx"].digest  # addresses differ
    launch, text = runs.launch("matmul/tma:fp16@sm_90"), first.artifacts["llir"].digest
    target = runs.target("sm_90")
    replayed = made.compiler.replay(side.toolchain(), launch.id, target, "ptx", text, attempt="randomized 0")
    assert replayed.artifacts["ptx"] == again.artifacts["ptx"]


def test_a_promise_is_left_out_for_both_and_a_spelling_for_the_one_that_needs_it(make):
    """Against the release no promise is left out."""
    old, new = substitute(tool(digest="old")), substitute(tool(digest="new"))
    made = make(old)
    made.outcome(old)
    assert dict(made.calls)["old"] == LLIR.decode().replace("captures(none)", "nocapture")
    made = make(old, new)
    made.outcome(old)
    made.outcome(new)
    without = LLIR.decode().replace(" samesign", "")
    assert dict(made.calls)["old"] == without.replace("captures(none)", "nocapture")
    assert dict(made.calls)["new"] == without
    notes = " ".join(made.compiler.notes())
    assert "llvm old cannot read icmp samesign: left out on both sides, in 1 texts" in notes
    assert "llvm old cannot read captures(none): spelled differently, with the same meaning" in notes
    assert "llvm old has no switch nvptx-short-ptr" in notes


@pytest.mark.parametrize(
    ("version", "options", "flags"),
    [
        ("3.6.0", {}, "-lineinfo -v --gpu-name=sm_90a"),
        ("3.7.1", {}, "-lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_90a"),
        ("3.9.0", {"enable_fp_fusion": "False", "ptx_options": "--maxrregcount 64"},
         "-lineinfo --fmad=false -v --regAllocOptLevel=2 --maxrregcount 64 --gpu-name=sm_90a"),
    ],
)  # fmt: skip
def test_a_ptxas_is_called_as_the_release_calls_it(version, options, flags):
    launch = runs.launch("matmul/pointer:fp16@sm_90", options=options)
    assert ptxas.flags(launch, version, ".version 8.7\n.target sm_90a\n") == tuple(flags.split())


@pytest.mark.parametrize("row", golden("tool-failures")["failure"], ids=itemgetter("message"))
def test_a_failure_names_the_construct(row):
    ended = EndedCommand(code=row["code"], stdout=b"", stderr=row["stderr"].encode(), timed_out=False)
    failure = failure_of(ended, "LLVM 22", "ptx", 300).failure
    assert (failure.kind, failure.message.removeprefix("LLVM 22 ")) == (row["kind"], row["message"])
    assert "0x00007f" not in failure.stderr
    assert (failure.kind in TRANSIENT) == (failure.kind is FailureKind.MEMORY)


def test_calls_of_unknown_intrinsics_are_no_code():
    ptx = (
        ".extern .func  (.param .b32 func_retval0) llvm.nvvm.ex2.approx.f32\n(\n)\n;\n"
        ".extern .func llvm.nvvm.div.full\n"
    )
    assert code_generation.unknown_intrinsics(ptx) == ["llvm.nvvm.ex2.approx.f32", "llvm.nvvm.div.full"]
    assert code_generation.unknown_intrinsics(".extern .func vprintf\n") == []


GOLDEN = tomllib.loads((Path(__file__).parents[2] / "golden/pairs/llvm-spellings.toml").read_text())


@pytest.mark.parametrize("row", GOLDEN["rewritten"], ids=lambda row: row["before"])
def test_a_construct_is_taken_out(row):
    assert rewritten(row["before"], [row["name"]]) == (row["after"], (row["name"],))
    assert rewritten(row["before"], []) == (row["before"], ())


@pytest.mark.parametrize("row", GOLDEN["stays"], ids=lambda row: row["text"])
def test_what_means_something_else_stays(row):
    assert rewritten(row["text"], [row["name"]]) == (row["text"], ())
