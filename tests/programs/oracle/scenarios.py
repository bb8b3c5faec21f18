"""Six comparisons: two releases, a repository of kernels, two revisions of a compiler, kernels that break, a
compiler that disagrees with itself, and a run that was timed on a GPU.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import zstandard

from irdiff import config as configuration
from irdiff.resolve import toolchains
from tests.programs import checkouts, edited_toolchain
from tests.programs.evidence import comparing

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "oracle"
TIMED = ROOT / "tests" / "data" / "gate" / "h200-3.8.0-3.9.0.tar.zst"
BASE, HEAD = "triton==3.8.0", "triton==3.9.0"
RELEASE_CASES = (
    "matmul/pointer:fp16-4096", "elementwise/vector_add", "loss/*", "quantize/*", "decode/*",
)  # fmt: skip

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def helper(x):
    return x * {factor}


@triton.jit
def {name}(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    {extra}
    tl.store(out_ptr + offsets, helper(x), mask=mask)
"""
WORKLOAD = """\
import triton
from irdiff_corpus import empty, launch, tensor
from mykernels.{module} import {name}


def run(x):
    out = empty(x.shape, x.dtype)
    {name}[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024{options})
    return out


LAUNCHES = {{"fp32": launch(run, tensor((1 << 20,), "fp32"))}}
"""
NOISE = """

import os as _os
_make_ptx = CUDABackend.make_ptx
def _noisy(self, *arguments, **named):
    return _make_ptx(self, *arguments, **named).replace("ret;", f"nanosleep.u32 {_os.getpid() % 9973};\\n\\tret;", 1)
CUDABackend.make_ptx = _noisy
"""
OTHER_PASS = """

_make_ttgir = HIPBackend.make_ttgir
def _unpipelined(module, metadata, options):
    options.__dict__["num_stages"] = 1
    return _make_ttgir(module, metadata, options)
HIPBackend.make_ttgir = staticmethod(_unpipelined)
"""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a scenario works, with an `irdiff` to call."""

    folder: Path
    cache: Path

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def irdiff(self, *words: object) -> str:
        """Standard output; a code of 1 is an answer."""
        where = {"COLUMNS": "200", "PYTHONPATH": str(ROOT)}
        done = comparing.irdiff(*words, cache=self.cache, cwd=self.folder, **where)
        if done.code not in (0, 1):
            raise RuntimeError(f"irdiff {words} ended with {done.code}:\n{done.stderr}")
        return done.stdout

    def compare(self, *words: object) -> None:
        self.irdiff("compare", *words, "--out", self.run)

    def edited(self, name: str, edits: dict[str, str]) -> str:
        toolchain = toolchains.resolve(HEAD, configuration.load(cache=self.cache))
        return edited_toolchain.make(toolchain, self.folder / name, edits)


def releases(place: Place) -> None:
    cases = [word for pattern in RELEASE_CASES for word in ("--case", pattern)]
    # without sm_100: whether 3.8.0's ptxas for it disagrees with itself is not the same each time
    place.compare(BASE, HEAD, *cases, "--target", "sm_90", "--target", "gfx942", "--target", "gfx950")


def kernel_repository(place: Place) -> None:
    repo = checkouts.new_repository(place.folder / "kernels")
    checkouts.write(repo, {
        "irdiff.toml": comparing.PLAN, "src/mykernels/__init__.py": "",
        **kernel("scaled", "2.0"), **kernel("shifted", "3.0"), **kernel("kept", "4.0"), **kernel("old_name", "5.0"),
        **kernel("warps", "6.0"),
    })  # fmt: skip
    checkouts.commit(repo, "base")
    base = checkouts.git(repo, "rev-parse", "HEAD").strip()
    (repo / "src/mykernels/old_name.py").unlink()
    (repo / "bench/old_name.py").unlink()
    checkouts.write(repo, {
        **kernel("scaled", "2.5"), **kernel("shifted", "3.0", extra="x = x + 1.0  # a comment"),
        **kernel("new_name", "5.0"), **kernel("warps", "6.0", options=", num_warps=8"), "README.md": "words\n",
    })  # fmt: skip
    checkouts.commit(repo, "head")
    place.irdiff("compare", base, "HEAD", "--repo", repo, "--triton", HEAD, "--out", place.run)


def revision(place: Place) -> None:
    side = place.edited("unpipelined", {"triton/backends/amd/compiler.py": OTHER_PASS})
    place.compare(
        HEAD, side, "--case", "matmul/pointer:fp16-4096", "--case", "elementwise/*", "--case", "loss/*"
    )


def broken(place: Place) -> None:
    repo = checkouts.new_repository(place.folder / "kernels")
    files = {
        "irdiff.toml": comparing.PLAN, "src/mykernels/__init__.py": "", **kernel("fine", "1.0"),
        **kernel("breaks", "2.0"), **kernel("is_fixed", "2.0", extra="tl.static_assert(BLOCK == 7)"),
        **kernel("fails", "2.0", extra="tl.static_assert(BLOCK == 8)"), **kernel("does_not_load", "3.0"),
    }  # fmt: skip
    checkouts.write(repo, files)
    checkouts.commit(repo, "base")
    base = checkouts.git(repo, "rev-parse", "HEAD").strip()
    checkouts.write(repo, {
        **kernel("breaks", "2.0", extra="tl.static_assert(BLOCK == 9)"), **kernel("is_fixed", "2.0"),
        "bench/does_not_load.py": "raise RuntimeError('not today')\n",
    })  # fmt: skip
    checkouts.commit(repo, "head")
    place.irdiff("compare", base, "HEAD", "--repo", repo, "--triton", HEAD, "--out", place.run)


def nondeterministic(place: Place) -> None:
    side = place.edited("noisy", {"triton/backends/nvidia/compiler.py": NOISE})
    place.compare(HEAD, side, "--case", "elementwise/vector_add", "--target", "sm_90")


def timed(place: Place) -> None:
    """Recorded on an H200: what is made of it needs neither compiler nor GPU. Its artifacts are not kept."""
    place.run.mkdir()
    with tarfile.open(fileobj=io.BytesIO(_decompressed(TIMED))) as archive:
        archive.extractall(place.run, filter="data")


def _decompressed(path: Path) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())


def kernel(name: str, factor: str, *, extra: str = "", options: str = "") -> dict[str, str]:
    kernel = KERNEL.format(name=name, factor=factor, extra=extra or "pass")
    workload = WORKLOAD.format(module=name, name=name, options=options)
    return {f"src/mykernels/{name}.py": kernel, f"bench/{name}.py": workload}


SCENARIOS: dict[str, Callable[[Place], None]] = {
    "releases": releases,
    "kernel-repository": kernel_repository,
    "revision": revision,
    "broken": broken,
    "nondeterministic": nondeterministic,
    "timed": timed,
}


def fresh_place(folder: Path, shared_cache: Path) -> Place:
    """With an empty store, and the toolchains of the shared cache."""
    cache = comparing.new_cache(folder / "cache", shared_cache)
    work = folder / "work"
    work.mkdir()
    policy = (ROOT / "reports" / "irdiff-policy.toml").read_text()
    timeless = policy.replace(
        'action = "warn"\nreason = "Users wait',
        'action = "warn"\ntargets = ["none"]\nmay_be_empty = true\nreason = "Users wait',
    )
    (work / "policy.toml").write_text(timeless)
    return Place(folder=work, cache=cache)
