"""Runs on the GPU, in a process of its own: `python -m irdiff.timing.gpu_process FOLDER`.

Requests and replies are JSON lines on standard input and output; output of kernels goes to the log. A kernel
that faults ends this process; the parent (`isolate`) reports the case and starts another.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from irdiff import backends
from irdiff.backends import gpus, launch_plan
from irdiff.backends.device import Device, DriverError
from irdiff.backends.launch_plan import AbiError, LaunchPlan, read_entry
from irdiff.errors import IrdiffError
from irdiff.model import Launch
from irdiff.run import run_folder
from irdiff.timing import buffers
from irdiff.timing.buffers import Buffers, Inputs
from irdiff.timing.measure import Arm, Enqueue, Pace, measure
from irdiff.timing.open_device import describe, open_device, target_of

_SEED = 20
_MEMORY_SHARE = 0.6

Request = Mapping[str, Any]
Reply = dict[str, Any]
Say = Callable[[Reply], None]


@dataclass(frozen=True, kw_only=True)
class LoadableSide:
    launch: Launch
    plan: LaunchPlan
    binary: bytes


class GpuSession:
    device: Device | None = None
    card: dict[str, Any]

    def __init__(self, folder: Path) -> None:
        import torch

        self.torch: Any = torch
        self.folder = folder
        self.run = run_folder.load(folder)
        self._cases = {case.id: case for case in self.run.cases}
        self._targets = {target.name: target for target in self.run.targets}

    def open(self, index: int) -> dict[str, Any]:
        self.device = open_device(index)
        self.card = describe(self.torch, index, self.device)
        return self.card

    def side(self, case_id: str, name: str) -> LoadableSide:
        """Takes `base` or `head`. Raises AbiError if the side cannot be launched as captured."""
        case = self._cases[case_id]
        target = self._targets[case.target]
        digest = case.launches.of(name)
        kind = backends.of(target.backend).BINARY
        artifact = case.artifacts.of(name).get(kind.artifact) if kind else None
        if digest is None or artifact is None:
            raise AbiError(f"{name} has no binary of {case_id}")
        binary = run_folder.artifact(self.folder, artifact.digest)
        if binary is None:
            raise AbiError(f"the run folder does not hold {name}'s binary of {case_id}")
        launch, metadata = self.run.launches[digest], case.metadata.of(name)
        entry = read_entry(binary, str(metadata.get("name", launch.kernel)), target.backend)
        plan = launch_plan.plan(launch, metadata, entry, backend=target.backend, warp_size=target.warp_size)
        return LoadableSide(launch=launch, plan=plan, binary=binary)

    def inputs(self, sides: Mapping[str, LoadableSide], copies: int) -> Inputs:
        """Raises AbiError if the GPU's memory cannot hold so many copies."""
        needed = buffers.storages(self.torch, [side.launch for side in sides.values()])
        size = copies * sum(storage.size_bytes for storage in needed)
        if size > self.card["memory_bytes"] * _MEMORY_SHARE:
            here = self.card["memory_bytes"] >> 30
            raise AbiError(f"needs {size >> 30} GiB of GPU memory; this card has {here}")
        return Inputs(self.torch, needed, _SEED)

    def arm(self, side: LoadableSide) -> Arm:
        """Loads another copy of a side's kernel."""
        device, plan = self.device, side.plan
        assert device
        function = device.load(side.binary, plan)
        scratch = buffers.scratch(self.torch, plan)

        def bind(memory: Buffers) -> Enqueue:
            block = buffers.parameter_block(device, plan, memory, scratch)
            return lambda stream: device.launch(function, plan, block, stream)

        return bind

    def launch(self, arm: Arm, memory: Buffers) -> None:
        arm(memory)(gpus.current_stream(self.torch))
        gpus.of_torch(self.torch).synchronize()


def verify(session: GpuSession, request: Request, say: Say) -> Reply:
    """Runs base twice and head once from the same inputs and compares everything that they wrote."""
    torch = session.torch
    sides = {name: session.side(request["case"], name) for name in ("base", "head")}
    inputs = session.inputs(sides, 4)
    memory = Buffers(inputs)
    arms = {}
    for name, side in sides.items():
        say({"kind": "progress", "side": name})
        arms[name] = session.arm(side)

    contents = []
    for name in ("base", "base", "head"):
        memory.load()
        memory.poison_outputs()
        gpus.of_torch(torch).synchronize()
        say({"kind": "progress", "side": name})
        session.launch(arms[name], memory)
        say({"kind": "progress", "side": None})
        if names := memory.overwritten():
            return {"kind": "out of bounds", "side": name, "arguments": names}
        contents.append(memory.copied())
    base, again, head = contents
    tolerance = sides["base"].launch.tolerance
    differences = (
        buffers.difference(torch, storage, base[storage.number], head[storage.number], tolerance)
        for storage in inputs.storages
    )
    repeats = all(torch.equal(base[number], again[number]) for number in base)
    return {
        "kind": "compared",
        "base_repeats": repeats,
        "differences": [asdict(difference) for difference in differences if difference],
    }


def timing(session: GpuSession, request: Request, say: Say) -> Reply:
    """Takes interleaved samples of base, a second copy of it, and the heads of one or more cases of that
    base.
    """
    cases: Mapping[str, str] = request["heads"]
    base = session.side(next(iter(cases.values())), "base")
    heads = {arm: session.side(case, "head") for arm, case in cases.items()}
    sides = {"base": base, "control": base, **heads}
    memory = Buffers(session.inputs(sides, 3))
    arms = {}
    for name in reversed(sides) if request["reverse"] else sides:
        # each alone first, so that an arm that faults whenever it runs is named
        say({"kind": "progress", "side": name})
        arms[name] = session.arm(sides[name])
        memory.load()  # a kernel may count on inputs that the one before has changed
        session.launch(arms[name], memory)
    say({"kind": "progress", "side": None})
    memory.load()
    pace = Pace(slice_s=request["slice_s"], l2_bytes=session.card["l2_bytes"], seed=request["seed"])
    samples, busy_s = measure(arms, memory, pace)
    return {"kind": "timed", "samples": samples, "busy_s": busy_s}


def opened(session: GpuSession, request: Request, _say: Say) -> Reply:
    return {"kind": "opened", "card": session.open(request["index"])}


def listed(session: GpuSession, _request: Request, _say: Say) -> Reply:
    torch = session.torch
    versions = {"torch": str(torch.__version__), "python": sys.version.split()[0]}
    seen = gpus.of_torch(torch)
    count = seen.device_count() if seen.is_available() else 0
    targets = [target_of(torch, index) for index in range(count)]
    return {"kind": "listed", "targets": targets, "versions": versions}


_OPERATIONS = {"list": listed, "open": opened, "verify": verify, "time": timing}


def serve(folder: Path) -> None:
    channel = private_channel()
    session = GpuSession(folder)

    def say(reply: Reply) -> None:
        channel.write(json.dumps(reply) + "\n")
        channel.flush()

    say({"kind": "ready"})
    for line in sys.stdin:
        try:
            reply = answer(session, json.loads(line), say)
        except Exception as error:
            say({"kind": "fault", "message": " ".join(str(error).split())[:500] or type(error).__name__})
            raise
        say(reply)


def answer(session: GpuSession, request: Request, say: Say) -> Reply:
    """Raises the error of a kernel, the driver or torch: that is a fault. An error before anything of the
    case ran (it does not fit the captured launch) is a refusal.
    """
    try:
        reply = _OPERATIONS[request["op"]](session, request, say)
    except DriverError:
        raise
    except (IrdiffError, ValueError) as error:
        reply = {"kind": "refused", "message": " ".join(str(error).split())}
    if session.device is not None:
        gpus.of_torch(session.torch).synchronize()
    return reply


def private_channel() -> TextIO:
    """Reserves standard output for replies: later writes to it, also by C libraries and `printf` of kernels,
    go to standard error.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
