"""What a second machine pays: `python -m tests.programs.bench_shared_store [--rounds 8] [--case PATTERN …]`.

A comparison of two releases is left in a bucket on loopback. Then the same comparison takes turns: with a full
local store, and with an empty one beside the full bucket. The store lies in the folder for temporary files
(`TMPDIR`): on a disk, making files is most of the difference.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Mapping
from statistics import median

from irdiff import config
from tests.programs.bench import Cost, fresh_cache, irdiff
from tests.s3_server import BUCKET, serving


def in_turn(measures: Mapping[str, Callable[[], Cost]], rounds: int) -> dict[str, list[Cost]]:
    """Each of them once a round."""
    found: dict[str, list[Cost]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            found[name].append(measure())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--case", action="append", default=[])
    options = parser.parse_args()
    cache = fresh_cache(config.load().cache)
    store, kept = cache / "results", cache / "full"
    chosen = [word for pattern in options.case for word in ("--case", pattern)]
    words = (
        "compare",
        "triton==3.8.0",
        "triton==3.9.0",
        "--tier",
        "gate",
        "--out",
        str(cache / "run"),
        *chosen,
    )

    def here() -> Cost:
        shutil.rmtree(cache / "run")
        kept.rename(store)
        cost = irdiff(*words, cache=cache)
        store.rename(kept)
        return cost

    def there() -> Cost:
        shutil.rmtree(cache / "run")
        os.environ["IRDIFF_STORE"] = bucket
        cost = irdiff(*words, cache=cache)
        del os.environ["IRDIFF_STORE"]
        shutil.rmtree(store)
        return cost

    bucket = f"s3://{BUCKET}/nightly"
    with serving() as server:
        os.environ.update(server.variables(), IRDIFF_STORE=bucket)
        irdiff(*words, "--store-mode", "write", cache=cache)
        del os.environ["IRDIFF_STORE"]
        store.rename(kept)
        found = in_turn({"full local store": here, "full bucket, empty local store": there}, options.rounds)
    for name, costs in found.items():
        walls = sorted(cost.wall_s for cost in costs)
        print(f"{name:32} {median(walls):5.2f} s ({walls[0]:.2f}–{walls[-1]:.2f})")
    ratios = sorted(far.wall_s / near.wall_s for near, far in zip(*found.values(), strict=True))
    print(f"{median(ratios):.2f} × in the median of rounds ({ratios[0]:.2f}–{ratios[-1]:.2f}), bound 1.3 ×")
    shutil.rmtree(cache)


if __name__ == "__main__":
    main()
