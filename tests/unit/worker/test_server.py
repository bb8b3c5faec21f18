"""Which hosts a worker keeps, what it answers when they end, and the loop; without any process."""

import contextlib
import itertools
import os
import signal
from types import SimpleNamespace

import pytest

from irdiff.worker.serve import server

MIB = 1 << 20


class Hosts(server.Hosts):
    """With hosts that are no processes."""

    def __init__(self, *, ready=True):
        self.replies, self.forgotten = [], []
        key_of, forget = (lambda request: request["workload"]), self.forgotten.append
        super().__init__(key_of, None, None, forget, self.replies.append)
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


def test_the_folders_of_each_ended_host_are_deleted(monkeypatch):
    hosts = Hosts()
    hosts.ask(1, 2)
    ended = hosts.by_key["w1"].pid
    hosts.ended(ended, 0)
    closed = hosts.by_key["w2"].pid
    hosts.by_key.pop("w2").close()  # as where memory is scarce
    hosts.ended(closed, 0)
    assert hosts.forgotten == [ended, closed]


class Children(server.Children):
    """With children that are no processes."""

    def __init__(self, monkeypatch, folder):
        self.replies, self.ways, self.folder = [], {}, folder
        super().__init__(None, self.replies.append)
        self.pids = itertools.count(1 << 30)
        monkeypatch.setattr(server, "_kill_group", lambda pid: None)

    def _start(self, request):
        (from_host, to_child), (from_child, to_host) = os.pipe(), os.pipe()
        os.set_blocking(from_child, False)
        child = server.Child(next(self.pids), to_child, from_child)
        child.begin(request)
        self.by_pid[child.pid] = child
        self.ways[child.pid] = from_host, to_host

    def ask(self, number, **more):
        self.submit({"id": number, "timeout_s": 5, "folder": str(self.folder), "shared": True, **more})

    def is_as_before(self, pid):
        """The child says so."""
        os.write(self.ways[pid][1], b"\n")
        self.receive(self.by_pid[pid])

    @property
    def answered(self):
        return [(row["id"], row["signal"]) for row in self.replies]


@pytest.fixture
def children(monkeypatch, tmp_path):
    return Children(monkeypatch, tmp_path)


def test_a_child_answers_by_how_it_ended(children):
    children.ask(7, shared=False)
    ((pid, child),) = children.by_pid.items()
    assert children.timed() == [(child.deadline, pid, child.request)]
    children.ended(pid, 0)
    children.ended(8, 0)
    assert children.replies == [{"id": 7, "signal": 0, "timed_out": False}] and not children.by_pid


def test_a_child_that_is_as_before_serves_what_may_be_shared_and_nothing_else(children):
    children.ask(1)
    children.ask(2)
    first, second = children.by_pid
    children.is_as_before(first)
    children.is_as_before(second)
    children.ask(3, shared=False)
    children.ask(4)
    serving = {pid: child.request["id"] for pid, child in children.by_pid.items() if child.request}
    assert list(serving.values()) == [4, 3] and first not in serving
    assert b'"id": 4' in os.read(children.ways[second][0], 4096)
    assert children.answered == [(1, 0), (2, 0)] and len(children.timed()) == 2


def test_whatever_else_a_used_child_does_is_done_again_in_one_of_its_own(children, tmp_path):
    children.ask(1)
    (used,) = children.by_pid
    children.is_as_before(used)
    (tmp_path / "input.ttgir").write_text("what it is to read")
    children.ask(2)
    (tmp_path / "result.json").write_text("what is not to be read")
    (tmp_path / "assemble").mkdir()
    children.by_pid[used].request["timed_out"] = True
    children.ended(used, signal.SIGKILL)
    ((own, child),) = children.by_pid.items()
    assert (child.request["id"], child.request["timed_out"]) == (2, False)
    assert os.listdir(tmp_path) == ["input.ttgir"]
    assert own != used and children.answered == [(1, 0)]
    children.ended(own, signal.SIGSEGV)
    assert children.answered == [(1, 0), (2, signal.SIGSEGV)], "the failure is that of a child of its own"


def test_a_child_that_says_so_and_dies_has_answered(children):
    children.ask(1)
    (pid,) = children.by_pid
    os.write(children.ways[pid][1], b"\n")
    children.ended(pid, signal.SIGKILL)
    assert children.answered == [(1, 0)] and not children.by_pid


def test_how_long_a_child_stays(children, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    children.ask(0)
    (pid,) = children.by_pid
    children.is_as_before(pid)
    assert children.tidy() == [105.0]
    now[0] = 105.0
    assert children.tidy() == [] and not children.by_pid
    children.ask(0)
    (pid,) = children.by_pid
    for number in range(1, 17):
        assert list(children.by_pid) == [pid]
        children.is_as_before(pid)
        if number < 16:
            children.ask(number)
    assert not children.by_pid and len(children.replies) == 17
