"""Which hosts a worker keeps, without any process."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator

import pytest

from irdiff.worker import server

MIB = 1 << 20


class Hosts(server.Hosts):
    """With hosts that are no processes, ready at once and each of one size."""

    def __init__(self, own_bytes: int, limit_bytes: int) -> None:
        super().__init__(lambda request: request["workload"], None, None, None)
        self.own_bytes, self.limit_bytes = own_bytes, limit_bytes

    def _start(self, request: dict[str, object]) -> server.Host:
        (_, to_host), (from_host, _) = os.pipe(), os.pipe()
        host = server.Host(0, request, to_host, from_host)
        host.ready, host.own_bytes = True, self.own_bytes
        return host

    def served(self, *workloads: int) -> list[str]:
        """What is loaded after each of these was asked for and has answered."""
        for number in workloads:
            self.submit({"id": number, "workload": f"w{number}", "timeout_s": 1})
            for host in self.by_key.values():
                host.waiting.clear()
        return list(self.by_key)


@pytest.fixture(autouse=True)
def _no_open_pipes() -> Iterator[None]:
    before = set(os.listdir("/proc/self/fd"))
    yield
    for descriptor in set(os.listdir("/proc/self/fd")) - before:
        with contextlib.suppress(OSError):
            os.close(int(descriptor))


def test_small_hosts_are_kept() -> None:
    assert len(Hosts(7 * MIB, limit_bytes=1024 * MIB).served(*range(100))) == 100


def test_hosts_of_many_launches_fit_the_memory() -> None:
    """Of the idle ones the last goes: the first workloads are compiled first."""
    assert Hosts(64 * MIB, limit_bytes=640 * MIB).served(*range(100)) == [*(f"w{n}" for n in range(9)), "w99"]


def test_a_few_are_kept_whatever_they_hold() -> None:
    assert len(Hosts(4096 * MIB, limit_bytes=MIB).served(*range(3))) == 3


def test_a_host_that_works_is_not_ended() -> None:
    hosts = Hosts(64 * MIB, limit_bytes=MIB)
    for number in range(20):
        hosts.submit({"id": number, "workload": f"w{number}", "timeout_s": 1})
    assert len(hosts.by_key) == 20


def test_own_memory_is_what_no_other_process_shares() -> None:
    before = server._own_bytes(os.getpid())
    with mmap.mmap(-1, 32 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as mine:
        mine.write(b"\xff" * (32 * MIB))
        assert server._own_bytes(os.getpid()) - before > 24 * MIB
    assert server._own_bytes(-1) == server._HOST_BYTES
