"""What a second machine pays: `python -m tests.programs.bench_shared_store [--rounds 8] [--case PATTERN …]`.

A comparison of two releases is left in a bucket on loopback. Then the same comparison takes turns: with a full
local store, and with an empty one next to the full bucket. The store lies in the folder for temporary files
(`TMPDIR`): on a disk, making files is most of the difference.
"""

from __future__ import annotations

import argparse
import os
import shutil
from functools import partial
from statistics import median

from tests.programs.bench import Cost, fresh_cache, irdiff
from tests.s3_server import BUCKET, serving


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--case", action="append", default=[])
    options = parser.parse_args()
    cache = fresh_cache()
    store, full, bucket = cache / "results", cache / "full", f"s3://{BUCKET}/nightly"
    chosen = [word for pattern in options.case for word in ("--case", pattern)]
    sides = ("triton==3.8.0", "triton==3.9.0")
    compare = partial(
        irdiff, "compare", *sides, "--tier", "gate", "--out", cache / "run", *chosen, cache=cache
    )

    def here() -> Cost:
        full.rename(store)
        cost = compare()
        store.rename(full)
        return cost

    def there() -> Cost:
        cost = compare(IRDIFF_STORE=bucket)
        shutil.rmtree(store)
        return cost

    with serving() as server:
        os.environ.update(server.variables())
        compare("--store-mode", "write", IRDIFF_STORE=bucket)
        store.rename(full)
        rounds = [(here().wall_s, there().wall_s) for _ in range(options.rounds)]
    near, far = zip(*rounds, strict=True)
    for name, walls in (("full local store", near), ("full bucket, empty local store", far)):
        print(f"{name:32} {median(walls):5.2f} s ({min(walls):.2f}–{max(walls):.2f})")
    ratios = [far / near for near, far in rounds]
    print(
        f"{median(ratios):.2f} × in the median of rounds ({min(ratios):.2f}–{max(ratios):.2f}), bound 1.3 ×"
    )
    shutil.rmtree(cache.parent)


if __name__ == "__main__":
    main()
