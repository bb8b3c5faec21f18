"""Runs on the GPU, in a process of its own: `python -m irdiff.timing.gpu_process FOLDER`.

Requests are JSON lines on standard input, replies JSON lines on standard output, which nothing else in this
process writes to: what a kernel prints goes to the log. A kernel that faults takes this process with it; the
parent (`isolate`) reports the case and starts another. Nothing of the run is executed but its binaries.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from irdiff.errors import IrdiffError
from irdiff.model import Case, Launch, Run
from irdiff.run import run_folder
from irdiff.stages import Stage
from irdiff.timing import abi, buffers
from irdiff.timing.abi import AbiError, LaunchPlan
from irdiff.timing.buffers import Buffers, Scratch, Storage
from irdiff.timing.kernel_entry import read_entry
from irdiff.timing.measure import Enqueue, Pace, measure
from irdiff.timing.open_device import Card, Device, DriverError, ParameterBlock, open_device, target_of

BINARIES = {"cuda": Stage.CUBIN, "hip": Stage.HSACO}
_SEED = 20
_MEMORY_SHARE = 0.6

Request = Mapping[str, Any]
Reply = dict[str, Any]
Say = Callable[[Reply], None]


@dataclass(frozen=True, kw_only=True)
class LoadableSide:
    """One side of a case, ready to be loaded."""

    launch: Launch
    plan: LaunchPlan
    binary: bytes
    item_sizes: Mapping[int, int]
    """Bytes of an element by argument."""


class GpuSession:
    """One GPU and one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: Run = run_folder.load(folder)
        self.cases = {case.id: case for case in self.run.cases}
        import torch

        self.torch: Any = torch
        self.device: Device | None = None
        self.card: Card | None = None

    def open(self, index: int) -> Card:
        self.device = open_device(index)
        self.card = self.device.describe()
        return self.card

    def sides(self, case_id: str) -> tuple[Case, dict[str, LoadableSide]]:
        """Both sides of a case. Raises AbiError where one cannot be launched as captured."""
        case = self.cases[case_id]
        target = next(t for t in self.run.targets if t.name == case.target)
        found: dict[str, LoadableSide] = {}
        for name in ("base", "head"):
            digest = case.launches.of(name)
            artifact = case.artifacts.of(name).get(BINARIES.get(target.backend, ""))
            if digest is None or artifact is None:
                raise AbiError(f"{name} has no binary of {case_id}")
            binary = run_folder.artifact(self.folder, artifact.digest)
            if binary is None:
                raise AbiError(f"the run folder does not hold {name}'s binary of {case_id}")
            launch = self.run.launches[digest]
            metadata = case.metadata.of(name)
            entry = read_entry(binary, str(metadata.get("name", launch.kernel)), target.backend)
            plan = abi.plan(launch, metadata, entry, backend=target.backend, warp_size=target.warp_size)
            sizes = {
                index: int(buffers.torch_dtype(self.torch, argument.dtype).itemsize)
                for index, argument in enumerate(launch.arguments)
                if argument.dtype
            }
            found[name] = LoadableSide(launch=launch, plan=plan, binary=binary, item_sizes=sizes)
        return case, found

    def needed(self, sides: Mapping[str, LoadableSide], copies: int) -> tuple[Storage, ...]:
        needed = buffers.storages(self.torch, [side.launch for side in sides.values()])
        assert self.card
        size = copies * sum(storage.size_bytes for storage in needed)
        if size > self.card.memory_bytes * _MEMORY_SHARE:
            raise AbiError(
                f"needs {size >> 30} GiB of GPU memory; this card has {self.card.memory_bytes >> 30}"
            )
        return needed

    def arm(self, side: LoadableSide) -> Enqueue:
        """A freshly loaded copy of a side's kernel."""
        device = self.device
        assert device
        function = device.load(side.binary, side.plan)
        scratch = Scratch(self.torch, side.plan)

        def bind(memory: Buffers) -> object:
            return buffers.parameter_block(device, side.launch, side.plan, memory, scratch, side.item_sizes)

        def launch(parameters: object, stream: int) -> None:
            assert isinstance(parameters, ParameterBlock)
            device.launch(function, side.plan, parameters, stream)

        return Enqueue(bind=bind, launch=launch)


def verify(session: GpuSession, request: Request, say: Say) -> Reply:
    """Runs base twice and head once from the same inputs and compares all that they wrote."""
    torch = session.torch
    case, sides = session.sides(request["case"])
    needed = session.needed(sides, 4)
    initial = buffers.initial_contents(torch, needed, _SEED)
    memory = Buffers(torch, needed)
    arms = {}
    for name, side in sides.items():
        say({"kind": "progress", "side": name})
        arms[name] = session.arm(side)

    contents = []
    for name in ("base", "base", "head"):
        memory.load(initial)
        for storage in needed:
            if storage.is_output:
                memory.poison(storage.number)
        torch.cuda.synchronize()
        say({"kind": "progress", "side": name})
        arms[name].launch(arms[name].bind(memory), torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        say({"kind": "progress", "side": None})
        if broken := memory.broken_guards():
            names = [storage.name for storage in needed if storage.number in broken]
            return {"kind": "out of bounds", "side": name, "arguments": names}
        contents.append({storage.number: memory.body(storage.number).clone() for storage in needed})
    base, again, head = contents
    tolerance = sides["base"].launch.tolerance
    differences = [
        row
        for storage in needed
        if (row := buffers.difference(torch, storage, base[storage.number], head[storage.number], tolerance))
    ]
    repeats = all(torch.equal(base[storage.number], again[storage.number]) for storage in needed)
    return {
        "kind": "compared",
        "case": case.id,
        "base_repeats": repeats,
        "differences": [asdict(row) for row in differences],
    }


def timing(session: GpuSession, request: Request, say: Say) -> Reply:
    """Samples of one case in this process; with `others`, of further heads of the same base, all interleaved.

    The first head is the arm `head`, those of the others are `head 1`, `head 2` and so on.
    """
    torch = session.torch
    _, sides = session.sides(request["case"])
    copies = {"base": "base", "control": "base", "head": request.get("head", "head")}
    for number, other in enumerate(request.get("others", ()), 1):
        name = copies[f"head {number}"] = f"head {number}"
        sides[name] = session.sides(other)[1]["head"]
    needed = session.needed(sides, 3)
    initial = buffers.initial_contents(torch, needed, _SEED)
    memory = Buffers(torch, needed)
    arms = {}
    order = list(reversed(copies)) if request["reverse"] else list(copies)
    for name in order:  # each alone first, so that an arm that faults whenever it runs is named
        say({"kind": "progress", "side": name})
        arms[name] = session.arm(sides[copies[name]])
        memory.load(initial)  # a kernel may count on inputs that the one before has changed
        arms[name].launch(arms[name].bind(memory), torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
    say({"kind": "progress", "side": None})
    memory.load(initial)
    assert session.card
    pace = Pace(
        slice_s=request["slice_s"],
        l2_bytes=session.card.l2_bytes,
        seed=request["seed"],
    )
    rows, busy_s = measure(torch, arms, needed, initial, memory, pace)
    return {"kind": "timed", "rows": rows, "busy_s": busy_s}


def peaks(session: GpuSession, _request: Request, _say: Say) -> Reply:
    """What this card reaches through torch: an 8192³ fp16 product on random data, and a 4 GiB copy."""
    torch = session.torch
    size = 8192
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    product = _best_s(torch, lambda: torch.mm(a, b), 10)
    source = torch.ones(1 << 32, dtype=torch.uint8, device="cuda")
    sink = torch.empty_like(source)
    copy = _best_s(torch, lambda: sink.copy_(source), 5)
    return {
        "kind": "peaks",
        "tflops": 2 * size**3 / product / 1e12,
        "tb_per_s": 2 * source.numel() / copy / 1e12,
        "busy_s": product * 12 + copy * 7,
    }


def _best_s(torch: Any, work: Callable[[], Any], count: int) -> float:
    work()
    work()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / count


def opened(session: GpuSession, request: Request, _say: Say) -> Reply:
    return {"kind": "opened", "card": asdict(session.open(request["index"]))}


def listed(session: GpuSession, _request: Request, _say: Say) -> Reply:
    torch = session.torch
    versions = {"torch": str(torch.__version__), "python": sys.version.split()[0]}
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    targets = [target_of(torch, index) for index in range(count)]
    return {"kind": "listed", "targets": targets, "versions": versions}


_OPERATIONS = {"list": listed, "open": opened, "verify": verify, "time": timing, "peaks": peaks}


def serve(folder: Path) -> None:
    channel = private_channel()
    session = GpuSession(folder)

    def say(row: dict[str, Any]) -> None:
        channel.write(json.dumps(row) + "\n")
        channel.flush()

    say({"kind": "ready"})
    for line in sys.stdin:
        request = json.loads(line)
        begin = time.monotonic()
        try:
            reply = answer(session, request, say)
        except Exception as error:
            say({"kind": "fault", "message": " ".join(str(error).split())[:500] or type(error).__name__})
            raise
        say({**reply, "wall_s": time.monotonic() - begin})


def answer(session: GpuSession, request: Request, say: Say) -> Reply:
    """The reply to one request. Raises whatever a kernel, the driver or torch ends in: that is a fault.

    What is found before anything of the case ran (it does not fit the captured launch) is a refusal.
    """
    try:
        reply = _OPERATIONS[request["op"]](session, request, say)
    except DriverError:
        raise
    except (AbiError, IrdiffError, ValueError) as error:
        reply = {"kind": "refused", "message": " ".join(str(error).split())}
    if session.device is not None:
        session.torch.cuda.synchronize()
    return reply


def private_channel() -> TextIO:
    """Standard output for replies alone: whatever writes to it from now on, C libraries and `printf` of
    kernels too, writes to standard error.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
