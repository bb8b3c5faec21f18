"""Profiles the stored binaries of a run on a GPU host, and compares the counted work with what it counts.

    python -m tests.programs.counters pack RUN FOLDER [--side head]   # launches and binaries, without the run
    python -m tests.programs.counters profile FOLDER OUT              # on the GPU host; needs ncu and torch
    python -m tests.programs.counters launch FOLDER K/N LOG           # what `profile` runs under ncu

`profile` needs irdiff's modules and torch, numpy, msgpack and cuda-bindings; none of irdiff's other
dependencies. Each launch runs once, on the inputs that `irdiff time` would make.
"""

import dataclasses
import json
import lzma
import re
import subprocess
import sys
import time
from pathlib import Path

METRICS = (
    "smsp__inst_executed", "smsp__thread_inst_executed", "smsp__thread_inst_executed_pred_on", "smsp__inst_issued",
    "smsp__warps_launched",
    *(f"smsp__inst_executed_op_{space}_{op}" for space in ("global", "local", "shared", "generic")
      for op in ("ld", "st", "red", "atom")),
    *(f"smsp__inst_executed_op_{op}" for op in (
        "ldsm", "ldgsts", "branch", "shared_atom_dot_alu", "shared_atom_dot_cas", "shared_atom",
        "ldc", "barrier", "st", "ld", "tma", "global_atom", "global_red", "local", "texture",
        "ldgsts_cache_access", "ldgsts_cache_bypass")),
    *(f"smsp__inst_executed_pipe_{pipe}" for pipe in (
        "alu", "fma", "fmaheavy", "fmalite", "fma_type_fp16", "fp16", "fp64", "lsu", "xu", "adu", "cbu", "uniform", "tex", "tma", "uchlo",
        "tensor", "tensor_op_hmma", "tensor_op_imma", "tensor_op_dmma", "tensor_op_gmma", "cbu_pred_on_any",
        "ipa", "fp64_op_dmma", "tensor_op_hmma_type_hfma2", "alu_pred_on_any", "lsu_pred_on_any", "adu_pred_on_any")),
    "sm__inst_executed_pipe_tensor", "sm__inst_executed_pipe_tensor_op_gmma", "sm__inst_executed_pipe_tensor_op_hmma",
    *(f"l1tex__t_{what}_pipe_lsu_mem_{space}_op_{op}" for what in ("requests", "sectors")
      for space in ("global", "local") for op in ("ld", "st", "red", "atom")),
    *(f"l1tex__t_{what}_pipe_lsu_mem_global_op_ldgsts{kind}" for what in ("requests", "sectors")
      for kind in ("", "_cache_access", "_cache_bypass")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_shared{op}" for op in ("", "_op_ld", "_op_st", "_op_atom", "_op_red")),
    *(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared{op}" for op in ("", "_op_ld", "_op_st", "_op_atom", "_op_red")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_lg{op}" for op in ("", "_cmd_read", "_cmd_write")),
    "l1tex__data_pipe_lsu_wavefronts", "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld",
    "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld", "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st",
    "l1tex__m_xbar2l1tex_read_bytes", "l1tex__m_l1tex2xbar_write_bytes", "lts__t_sectors_srcunit_tex_op_read",
    "lts__t_sectors_srcunit_tex_op_write", "dram__bytes_read", "dram__bytes_write",
    "sm__sass_inst_executed_op_shared_ld",
)  # fmt: skip
PLAIN = ("gpu__time_duration.sum", "launch__registers_per_thread", "launch__grid_size", "launch__block_size")
SOURCE = (
    "inst_executed", "thread_inst_executed", "thread_inst_executed_true", "memory_l1_tag_requests_global",
    "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal",
    "memory_l2_theoretical_sectors_local", "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal",
)  # fmt: skip
_MAX_CONTENT_BYTES = 1 << 18


def pack(run_folder_path: str, out: str, side: str = "head") -> None:
    from irdiff.run import run_folder

    folder, target = Path(run_folder_path), Path(out)
    (target / "binaries").mkdir(parents=True)
    run, rows = run_folder.load(folder), []
    warp_sizes = {row.name: row.warp_size for row in run.targets}
    for case in run.cases:
        digest, artifact = case.launches.of(side), case.artifacts.of(side).get("cubin")
        if digest is None or artifact is None:
            continue
        name = artifact.digest[:24]
        (target / "binaries" / name).write_bytes(run_folder.artifact(folder, artifact.digest))
        launch = dataclasses.asdict(run.launches[digest])
        rows.append({"id": case.id, "binary": name, "launch": launch,
                     "metadata": dict(case.metadata.of(side)), "warp_size": warp_sizes[case.target]})  # fmt: skip
    (target / "launches.json").write_text(json.dumps(rows))
    print(f"{len(rows)} launches, {len(list((target / 'binaries').iterdir()))} binaries")


def packed(folder: Path):
    """(id, launch, binary, metadata, warp size) of each launch."""
    from irdiff.model import Argument, Launch

    for row in json.loads((folder / "launches.json").read_text()):
        fields = row["launch"]
        fields["arguments"] = tuple(Argument(**argument) for argument in fields["arguments"])
        fields["grid"] = fields["grid"] and tuple(fields["grid"])
        binary = (folder / "binaries" / row["binary"]).read_bytes()
        yield row["id"], Launch(**fields), binary, row["metadata"], row["warp_size"]


def launch(folder: str, part: str, log: str) -> None:
    import numpy
    import torch

    from irdiff.timing import abi, buffers
    from irdiff.timing.open_device import open_device

    index, count = map(int, part.split("/"))
    device, lines, contents = open_device(0), Path(log).open("a"), {}
    for number, (case, captured, binary, metadata, warp_size) in enumerate(packed(Path(folder))):
        if number % count != index:
            continue
        try:
            name = str(metadata.get("name", captured.kernel))
            entry = abi.read_entry(binary, name, "cuda")
            plan = abi.plan(captured, metadata, entry, backend="cuda", warp_size=warp_size)
            inputs = buffers.Inputs(torch, buffers.storages(torch, [captured]), 20)
            for storage in inputs.storages:
                random = str(storage.row["fill"]).startswith(("randint", "perm"))
                if random and storage.size_bytes <= _MAX_CONTENT_BYTES:
                    contents[f"{case}|{storage.number}"] = inputs.contents[storage.number].cpu().numpy()
            memory = buffers.Buffers(inputs)
            function = device.load(binary, plan)
            block = buffers.parameter_block(device, plan, memory, buffers.scratch(torch, plan))
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            device.launch(function, plan, block, torch.cuda.current_stream().cuda_stream)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            print(case, name, sep="\t", file=lines, flush=True)
            del memory, inputs, function, block
            torch.cuda.empty_cache()
        except Exception as error:
            print(case, f"!{str(error).splitlines()[0]}", sep="\t", file=lines, flush=True)
            if "CUDA" in str(error) or "cuda" in str(error):
                raise
    numpy.savez_compressed(log + ".npz", **contents)


def _exported(report: str, kind: str) -> str:
    pages = [["--page", "raw", "--print-units", "base"]]
    if kind == "source":
        pages = [["--page", "source", *view] for view in (["--print-source", "sass"], ["--view", "sass"], [])]
    for page in pages:
        shown = subprocess.run(["ncu", "--import", report, "--csv", *page], capture_output=True, text=True)
        if shown.returncode == 0 and len(shown.stdout) > 1000:
            return shown.stdout
        print(page, shown.returncode, shown.stdout[:300], shown.stderr[:300])
    return ""


def profile(
    folder: str, out: str, parts: str = "4", limit: str = "540", kinds: str = "counters,source"
) -> None:
    begin, target = time.monotonic(), Path(out)
    words = subprocess.run(
        ["ncu", "--query-metrics", "--chips", "gh100"], capture_output=True, text=True
    ).stdout
    there = set(re.findall(r"^(\w+__\w+)", words, re.MULTILINE))
    (target / "metrics.xz").write_bytes(lzma.compress(words.encode()))
    names = [f"{name}.sum" for name in METRICS if name in there] + list(PLAIN)
    print("not there:", *(name for name in METRICS if name not in there))
    chosen = {"counters": names, "source": list(SOURCE)}
    for kind in kinds.split(","):
        texts, logs = [], []
        for part in range(int(parts)):
            if time.monotonic() - begin > float(limit):
                print("out of time before", kind, part)
                break
            log, report = f"/tmp/{kind}-{part}.log", f"/tmp/{kind}-{part}"
            command = ["ncu", "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off",
                       "--metrics", ",".join(chosen[kind]), "-f", "-o", report,
                       sys.executable, "-m", "tests.programs.counters", "launch", folder, f"{part}/{parts}", log]  # fmt: skip
            left = max(5.0, float(limit) - (time.monotonic() - begin))
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=left)
                print(
                    kind,
                    part,
                    "rc",
                    done.returncode,
                    f"{time.monotonic() - begin:.0f} s",
                    done.stdout[-300:] if done.returncode else "",
                    done.stderr[-600:],
                )
            except subprocess.TimeoutExpired:
                print(kind, part, "timed out")
                continue
            texts.append(_exported(f"{report}.ncu-rep", kind))
            logs.append(Path(log).read_text())
            if kind == "counters":
                (target / f"contents-{part}.npz").write_bytes(Path(log + ".npz").read_bytes())
        (target / f"{kind}.xz").write_bytes(
            lzma.compress(json.dumps({"texts": texts, "logs": logs}).encode(), preset=6)
        )
        print(kind, sum(map(len, texts)), "bytes of text", f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    {"pack": pack, "profile": profile, "launch": launch}[sys.argv[1]](*sys.argv[2:])
