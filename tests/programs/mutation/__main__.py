"""Command line of the mutation suite."""

from __future__ import annotations

import argparse
import sys
import time

from tests.programs.mutation.suite import Tally, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.mutation")
    parser.add_argument(
        "--full", action="store_true", help="at least 5,000 meaningful, 2,500 cosmetic mutants"
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sizes = {"meaningful": 28, "cosmetic": 28} if arguments.full else {"meaningful": 2, "cosmetic": 2}
    failed = False
    for name, per_kind in sizes.items():
        start = time.monotonic()
        tally = run(name, per_kind, arguments.seed)
        _print_table(name, tally, time.monotonic() - start)
        failed = failed or bool(tally.wrong)
    return int(failed)


def _print_table(name: str, tally: Tally, seconds: float) -> None:
    wrong = [(dialect, kind) for dialect, kind, _, _ in tally.wrong]
    for key in sorted(tally.tried):
        right = tally.tried[key] - wrong.count(key)
        mark = "" if right == tally.tried[key] else "  WRONG"
        print(f"{name:10}  {key[0]:7} {key[1]:34} {right:5} / {tally.tried[key]}{mark}")
    total = tally.tried.total()
    print(
        f"{name}: {len(tally.kinds)} kinds, {total} mutants, {total - len(tally.wrong)} judged right, "
        f"{len(tally.wrong)} wrong, {seconds:.0f} s\n"
    )
    for dialect, kind, artifact, number in tally.wrong[:40]:
        print(f"  wrong: {name} {dialect} {kind!r} on {artifact} with seed {number}")


if __name__ == "__main__":
    sys.exit(main())
