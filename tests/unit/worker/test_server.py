"""Which hosts a worker keeps, what it answers when they end, and the loop; without any process."""

import contextlib
import itertools
import os
import signal
from types import SimpleNamespace

import pytest

from irdiff.worker import server

MIB = 1 << 20


class Hosts(server.Hosts):
    """With hosts that are no processes."""

    def __init__(self, *, ready=True):
        self.replies = []
        super().__init__(lambda request: request["workload"], None, None, self.replies.append)
        self.ready = ready
        self.pids = itertools.count(1 << 30)

    def _start(self, request):
        (_, to_host), (from_host, self.answers) = os.pipe(), os.pipe()
        os.set_blocking(from_host, False)
        host = server.Host(next(self.pids), request, to_host, from_host)
        host.ready = self.ready
        return host

    def ask(self, *numbers, workload=""):
        for number in numbers:
            self.submit({"id": number, "workload": workload or f"w{number}", "timeout_s": 1})

    def served(self, *numbers):
        """What is loaded after each of these was asked for and has answered."""
        for number in numbers:
            self.ask(number)
            self.looked = 0.0
            self.tidy()
            for host in self.by_key.values():
                host.waiting.clear()
        return list(self.by_key)


@pytest.fixture(autouse=True)
def _no_open_pipes():
    before = set(os.listdir("/proc/self/fd"))
    yield
    for descriptor in set(os.listdir("/proc/self/fd")) - before:
        with contextlib.suppress(OSError):
            os.close(int(descriptor))


def test_which_hosts_are_kept(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(server, "memory_is_scarce", lambda: False)
    assert len(Hosts().served(*range(100))) == 100
    assert len(Hosts().served(*range(300))) == 240
    hosts = Hosts()
    hosts.served(*range(5))
    monkeypatch.setattr(server, "memory_is_scarce", lambda: True)
    hosts.tidy()
    assert len(hosts.by_key) == 5, "it has looked a moment ago"
    now[0] += 1
    hosts.tidy()
    # the last goes: the first workloads are compiled first
    assert list(hosts.by_key) == ["w0", "w1", "w2", "w3"]
    assert hosts.served(5) == ["w0", "w1", "w2", "w5"]
    for _ in range(9):
        now[0] += 1
        hosts.tidy()
    assert list(hosts.by_key) == ["w0"], "a worker at work keeps one"
    now[0] += 60
    hosts.tidy()
    assert not hosts.by_key
    working = Hosts()
    working.ask(*range(20))
    working.tidy()
    assert len(working.by_key) == 20


def test_a_host_that_becomes_ready_gets_what_waits_and_its_answers_go_on():
    hosts = Hosts(ready=False)
    hosts.ask(1, 2, 3, workload="w")
    (host,) = hosts.by_key.values()
    first, rest = b'{"ready": true, "served": true}\n{"id": 2, "sig', b'nal": 9}\n'
    os.write(hosts.answers, first)
    assert hosts.receive(host) and host.ready
    assert [row["id"] for row in hosts.replies] == [1] and hosts.timed() == []
    os.write(hosts.answers, rest)
    assert hosts.receive(host) and not hosts.receive(host)
    assert hosts.replies[1] == {"id": 2, "signal": 9} and [row["id"] for row in host.waiting] == [3]


def test_who_ended_a_host_gets_its_end_and_the_others_are_tried_once_more():
    hosts = Hosts(ready=False)
    hosts.ask(1, 2, workload="w")
    hosts.ended(hosts.by_key["w"].pid, signal.SIGKILL)
    assert [(row["id"], row["signal"]) for row in hosts.replies] == [(1, signal.SIGKILL)]
    again = hosts.by_key["w"]
    assert [row["id"] for row in again.waiting] == [2] and not again.waiting[0]["again"]
    again.ready = True  # it had come to the request then, which may be at fault
    hosts.ended(again.pid, 0)
    assert hosts.by_key["w"].waiting[0]["again"]
    hosts.ended(hosts.by_key["w"].pid, signal.SIGSEGV)
    assert [(row["id"], row["signal"]) for row in hosts.replies[1:]] == [(2, signal.SIGSEGV)]


def test_a_host_that_does_not_come_to_its_end_in_time_is_overdue():
    hosts = Hosts(ready=False)
    hosts.ask(1)
    ((_, pid, request),) = hosts.timed()
    assert (pid, request["id"]) == (hosts.by_key["w1"].pid, 1)
    request["timed_out"] = True
    hosts.ended(pid, signal.SIGKILL)
    assert hosts.replies == [{"id": 1, "signal": 9, "timed_out": True}]


def test_a_child_answers_by_how_it_ended(tmp_path, monkeypatch):
    replies = []
    monkeypatch.setattr(server, "_fork_into", lambda request, work: work() or request["id"])
    monkeypatch.setattr(server, "_kill_group", lambda pid: None)
    served = []
    children = server.Children(served.append, replies.append)
    children.submit({"id": 7, "timeout_s": 5})
    assert served[0]["id"] == 7 and children.timed()[0][1] == 7
    children.ended(7, 0)
    children.ended(8, 0)
    assert replies == [{"id": 7, "signal": 0, "timed_out": False}] and not children.running
