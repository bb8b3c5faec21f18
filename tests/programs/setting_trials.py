"""Does a setting that does nothing leave everything `unchanged`, and one that does something not?

    python -m tests.programs.setting_trials [--count 100] [--seed 0] [--release 3.9.0] [--jobs 1]

Draws settings at random among the knobs and the launch options that the release names: switches, numbers,
flags of ptxas and of LLVM, copies of tools. For each, `irdiff compare RELEASE +SETTING` with one shared cache
is held against what Triton alone makes, in a process without irdiff: the sections that execute, what the
launcher reads, or the error. Fails where a verdict differs from that, and where two settings share a digest.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff import config as configuration
from irdiff.backends.machine_code import machine_code
from irdiff.resolve import settings as side_settings
from irdiff.resolve import toolchains
from irdiff.resolve.toolchains.identity import WORKER
from tests.programs.evidence import comparing
from tests.texts import files_of

TARGETS = {"sm_90": ("cuda", "90", "32"), "gfx942": ("hip", "gfx942", "64")}
BINARIES = {"cuda": "cubin", "hip": "hsaco"}
RIGHT = {"same": {"unchanged", "ir-only"}, "other": {"changed"}, "fails": {"broken"}}
FLAGS = {
    "PTXAS_OPTIONS": ["--fmad=false", "-O1", "-O2", "-O3", "--maxrregcount=40", "-v", "--disable-warnings"],
    "DISABLE_LLVM_OPT": [
        "1",
        "disable-vector-combine",
        "disable-slp-vectorization",
        "disable-licm-promotion",
    ],
    "TRITON_F32_DEFAULT": ["ieee", "tf32", "tf32x3"],
    "USE_IR_LOC": ["ttir", "ttgir"],
    "TRITON_MOCK_PTX_VERSION": ["8.6", "8.7"],
}
NUMBERS = {
    "num_warps": [1, 2, 4, 8, 16, 3],
    "num_stages": [1, 2, 3, 4, 5],
    "num_ctas": [1, 2],
    "maxnreg": [24, 32, 64, 128, 255],
    "waves_per_eu": [0, 1, 2, 4],
    "matrix_instr_nonkdim": [0, 16, 32],
    "kpack": [1, 2],
    "ptx_version": [84, 86],
    "min_shared_mem": [0, 65536],
    "max_num_imprecise_acc_default": [0, 32],
}
NEVER = {"TRITON_INTERPRET", "TRITON_KERNEL_OVERRIDE", "TRITON_KERNEL_DUMP", "TRITON_STORE_BINARY_ONLY"}
"""They ask for a folder, or for another program than a compiler."""


ByHand = dict[str, list[object]]
"""{kernel: [what executes, what its launcher reads], or how it failed}."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One setting: the run, None where irdiff refuses it, and what Triton alone makes for each target."""

    found: dict[str, Any] | None
    made: Mapping[str, ByHand]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--release", default="3.9.0")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="setting-trials-") as folder:
        sys.exit(run(arguments, Path(folder)))


def run(arguments: argparse.Namespace, folder: Path) -> int:
    for name, text in files_of("settings").items():  # type: ignore[no-untyped-call]
        (folder / name).write_text(text)
    config = configuration.load()
    base = f"triton=={arguments.release}"
    toolchain = toolchains.resolve(base, config)
    described = json.loads(_output([toolchain.python, "-s", str(WORKER), "identify"], os.environ))
    draw = settings_of(described, Path(toolchain.root), folder, random.Random(arguments.seed))
    cache = comparing.new_cache(folder / "cache", config.cache)
    truths = {target: by_hand(toolchain.python, folder, target, {}) for target in TARGETS}
    drawn: dict[str, dict[str, str]] = {}
    while len(drawn) < arguments.count:
        chosen = next(draw)
        drawn.setdefault(side_settings.suffix(chosen), chosen)

    def trial(chosen: Mapping[str, str]) -> Trial:
        found = compared(base, side_settings.suffix(chosen), folder, cache)
        made = {target: by_hand(toolchain.python, folder, target, chosen) for target in TARGETS}
        return Trial(found=found, made=made)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        trials = dict(zip(drawn, pool.map(trial, drawn.values()), strict=True))
    return judged(trials, truths)


def judged(trials: Mapping[str, Trial], truths: Mapping[str, ByHand]) -> int:
    """Prints every wrong verdict and the totals; 1 where something is wrong."""
    digests: dict[str, str] = {}
    wrong, verdicts = 0, Counter[str]()
    for words, each in trials.items():
        if each.found is None:
            verdicts["refused"] += 1
            continue
        digest = each.found["head"]["digest"]
        if digest in digests or digest == each.found["base"]["digest"]:
            print(f"SHARED DIGEST {words}, {digests.get(digest)}")
            wrong += 1
        digests[digest] = words
        for case in each.found["cases"]:
            target, kernel, verdict = case["target"], case["kernel"], case["verdict"]
            now = each.made[target][kernel]
            expected = "same" if now == truths[target][kernel] else "other" if now[0] else "fails"
            verdicts[f"{expected}: {verdict}"] += 1
            if verdict not in RIGHT[expected]:
                print(f"WRONG {words} {kernel}@{target}: {verdict}, by hand {expected}")
                wrong += 1
    print(f"{len(trials)} settings, {dict(sorted(verdicts.items()))}, {wrong} wrong")
    return 1 if wrong else 0


def settings_of(
    described: Mapping[str, Any], root: Path, folder: Path, chance: random.Random
) -> Iterator[dict[str, str]]:
    """Endless: one or two settings each time."""
    knobs = {name for name, (kind, _) in described["knobs"].items() if kind == "bool"} - NEVER
    options = {name: kind for rows in described["options"].values() for name, (kind, _) in rows.items()}
    choices = {name: ["0", "1"] for name in sorted(knobs)}
    choices |= {name: ["true", "false"] for name, kind in sorted(options.items()) if kind == "bool"}
    choices |= {name: [str(value) for value in values] for name, values in NUMBERS.items() if name in options}
    choices |= {
        name: values for name, values in FLAGS.items() if name in described["knobs"] or "LLVM" in name
    }
    for name, file in (
        ("TRITON_PTXAS_PATH", "backends/nvidia/bin/ptxas"),
        ("TRITON_AMD_CODEGEN_PATH", "backends/amd/lib/libtriton_amd_codegen.so"),
    ):
        if name in described["knobs"] and (root / file).is_file():
            copy = folder / Path(file).name
            shutil.copyfile(root / file, copy)
            copy.chmod(0o755)
            choices[name] = [str(copy)]
    while True:
        names = chance.sample(sorted(choices), chance.choice((1, 1, 2)))
        yield {name: chance.choice(choices[name]) for name in names}


def compared(base: str, words: str, folder: Path, cache: Path) -> dict[str, Any] | None:
    """The run; None where irdiff refuses the setting."""
    out = Path(tempfile.mkdtemp(dir=folder))
    program = out / "program"
    program.mkdir()
    shutil.copyfile(folder / "kernels.py", program / "kernels.py")
    command = [sys.executable, "-m", "irdiff", "compare", base, words, "--program", "kernels.py", "-q"]
    command += [word for target in TARGETS for word in ("--target", target)]
    command += ["--no-attribute", "-j", "2", "--cache", str(cache), "--out", str(out / "run")]
    done = subprocess.run(command, cwd=program, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        print(done.stderr.strip())
        return None
    if done.returncode not in (0, 1, 4):
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads((out / "run" / "run.json").read_text())
    shutil.rmtree(out)
    return found


def by_hand(python: str, folder: Path, target: str, chosen: Mapping[str, str]) -> ByHand:
    variables = {name: value for name, value in chosen.items() if name.isupper()}
    options = {name: side_settings.value_of(value) for name, value in chosen.items() if name.islower()}
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "LLVM_"))},
        **variables,
        "TRITON_CACHE_DIR": tempfile.mkdtemp(dir=folder),
    }
    command = [python, str(folder / "by_hand.py"), *TARGETS[target], json.dumps(options)]
    made = json.loads(_output(command, environment))
    stage = BINARIES[TARGETS[target][0]]
    return {
        kernel: [machine_code(stage, bytes.fromhex(binary)).digest if binary else "", rest]
        for kernel, (binary, rest) in made.items()
    }


def _output(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"{command}\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    main()
