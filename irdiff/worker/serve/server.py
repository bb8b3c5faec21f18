"""The loop of a worker: triton is imported once, a workload is loaded once, a forked child serves requests.

    worker           imports triton; forks a host for each workload and target, a few at a time
      host           loads the workload and captures its launches, and may answer with them itself;
                     forks children for other requests
        child        serves one request and ends; or several that may share a process, one after another

A child that crashes, hangs or uses too much memory ends alone, and so does a host whose workload does.
Nothing outlives its parent: all die with it (PR_SET_PDEATHSIG).

The answer of a child that has served other (`shared`) requests counts only if the child says that it is as
it was before (`operations.serve`). After every failure, crash or time-out, a child of its own serves the
request again.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import math
import os
import resource
import select
import shutil
import signal
import sys
import time
import traceback

from .. import protocol

_PR_SET_PDEATHSIG = 1
_MAX_HOSTS = 240
"""Each has two open pipes, and `select` takes 1,024."""
_LOOK_S = 1
"""The time between two checks of the machine's memory: an ended host has freed its own by then."""
_IDLE_S = 60
_MOST_SERVED = 16
"""How many requests one child serves: the memory that its allocator keeps is freed when it ends."""
_CHILD_IDLE_S = 5
"""An idle child holds up to some hundred MiB."""
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    def __init__(self, pid, to_child, from_child):
        self.pid, self.to_child, self.from_child = pid, to_child, from_child
        self.request: dict | None = None
        """None while the child waits for a request."""
        self.deadline = self.idle_since = 0.0
        self.served = 0

    def begin(self, request):
        self.request, self.deadline = request, _deadline(request)

    def close(self):
        os.close(self.to_child)
        os.close(self.from_child)


class Children:
    def __init__(self, serve, reply):
        self.serve, self.reply = serve, reply
        self.by_pid: dict = {}

    def submit(self, request):
        idle = [child for child in self.by_pid.values() if child.request is None]
        if idle and request.get("shared"):
            idle[-1].begin({**request, "held": os.listdir(request["folder"])})
            _write(idle[-1].to_child, request)  # where it is dead, `ended` has the request served again
        else:
            self._start(request)

    def _start(self, request):
        def work(requests_fd, replies_fd):
            self._serve_all(request, requests_fd, replies_fd)

        child = Child(*_fork_with_pipes(request, self.by_pid.values(), work))
        child.begin(request)
        self.by_pid[child.pid] = child

    def _serve_all(self, request, requests_fd, replies_fd):
        with open(requests_fd) as requests:
            while self._is_as_before(request) and request.get("shared"):
                os.write(replies_fd, b"\n")
                line = requests.readline()
                if not line:
                    return
                request = json.loads(line)
                _print_into(request)

    def _is_as_before(self, request):
        """The processor limit is that of this child, because its host serves other requests."""
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        limit = most
        if "cpu_s" in request:
            used = resource.getrusage(resource.RUSAGE_SELF)
            limit = math.ceil(used.ru_utime + used.ru_stime) + request["cpu_s"]
        resource.setrlimit(resource.RLIMIT_CPU, (limit, most))
        return self.serve(request)

    def receive(self, child):
        """A child writes a line when it has served its request, and is as it was before."""
        try:
            chunk = os.read(child.from_child, 1 << 10)
        except BlockingIOError:
            return False
        if chunk:
            self.reply(_reply_of(child.request, 0))
            child.request, child.idle_since = None, time.monotonic()
            child.served += 1
            if child.served == _MOST_SERVED:
                self._end(child)
        return bool(chunk)

    def _end(self, child):
        del self.by_pid[child.pid]
        child.close()
        _kill_group(child.pid)

    def ended(self, pid, status):
        child = self.by_pid.get(pid)
        if child is None:
            return
        self.receive(child)
        if child.pid in self.by_pid:
            self._end(child)  # with whatever it left behind
        if child.request is None:
            return
        if child.served == 0:
            self.reply(_reply_of(child.request, status))
        else:
            self._serve_again(child.request)

    def _serve_again(self, request):
        """Serves it in a child of its own, from what its folder held: earlier requests may be why a child
        ended.
        """
        new_files = (file for file in os.scandir(request["folder"]) if file.name not in request["held"])
        for entry in list(new_files):
            shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
        self._start({**request, "shared": False, "timed_out": False})

    def timed(self):
        """Lists (deadline, process id, request)."""
        return [(child.deadline, child.pid, child.request) for child in self.by_pid.values() if child.request]

    def sources(self):
        return {child.from_child: child for child in self.by_pid.values()}

    def tidy(self):
        """Ends children that wait for a request in vain. Returns the times to look again."""
        for child in [child for child in self.by_pid.values() if child.request is None]:
            if time.monotonic() >= child.idle_since + _CHILD_IDLE_S:
                self._end(child)
        return [child.idle_since + _CHILD_IDLE_S for child in self.by_pid.values() if child.request is None]

    def close(self):
        for pid in self.by_pid:
            _kill_group(pid)


class Host:
    """A process in which one workload is loaded for one target. Until it is ready, requests wait."""

    def __init__(self, pid, request, to_host, from_host):
        self.pid, self.first, self.deadline = pid, request, _deadline(request)
        self.to_host, self.from_host = to_host, from_host
        self.ready = False
        self.waiting: list = []
        self.buffer = b""

    def send(self, request):
        _write(self.to_host, request)  # where it is dead, `Hosts.ended` answers what waits

    def close(self):
        os.close(self.to_host)
        os.close(self.from_host)


class Hosts:
    """Hosts by what they have loaded, the least recently used first.

    While memory is scarce or there are too many, the host that became idle last is ended: cases come in the
    order of their workloads, so an older one is needed again earlier.
    """

    def __init__(self, key_of, prepare, serve, forget, reply):
        self.looked, self.used = 0.0, 0.0
        self.key_of, self.forget = key_of, forget
        self.prepare, self.serve, self.reply = prepare, serve, reply
        self.by_key: dict = {}

    def submit(self, request):
        key, self.used = self.key_of(request), time.monotonic()
        host = self.by_key.pop(key, None) or self._start(request)
        self.by_key[key] = host
        host.waiting.append(request)
        if host.ready:
            host.send(request)

    def tidy(self):
        """Ends one host, if necessary. Returns the times to look again."""
        now, most = time.monotonic(), _MAX_HOSTS
        if now >= self.looked + _LOOK_S:
            self.looked, least = now, 1 if now < self.used + _IDLE_S else 0
            most = least if memory_is_scarce() else _MAX_HOSTS
        idle = [key for key, host in self.by_key.items() if not host.waiting]
        if idle and len(self.by_key) > most:
            self.by_key.pop(idle[-1]).close()
        return [self.looked + _LOOK_S] if self.by_key else []

    def _start(self, request):
        def work(requests_fd, replies_fd):
            served = self.prepare(request)
            run(requests_fd, replies_fd, Children, (self.serve,), {"ready": True, "served": served})

        pid, to_host, from_host = _fork_with_pipes(request, self.by_key.values(), work)
        return Host(pid, request, to_host, from_host)

    def receive(self, host):
        """Reads that a host is ready, and how its children ended."""
        try:
            chunk = os.read(host.from_host, 1 << 16)
        except BlockingIOError:
            return False
        *lines, host.buffer = (host.buffer + chunk).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("ready"):
                host.ready = True
                if message["served"]:
                    self.reply(_reply_of(host.waiting.pop(0), 0))
                for request in host.waiting:
                    host.send(request)
            else:
                host.waiting = [request for request in host.waiting if request["id"] != message["id"]]
                self.reply(message)
        return bool(chunk)

    def ended(self, pid, status):
        for key, host in list(self.by_key.items()):
            if host.pid == pid:
                while self.receive(host):
                    pass
                del self.by_key[key]
                host.close()
                _kill_group(pid)
                self._answer_for(host, status)
        self.forget(pid)

    def _answer_for(self, host, status):
        """The request whose workload ended a host gets that end as its reply; others are tried once more."""
        for number, request in enumerate(host.waiting):
            if request.get("again") or (number == 0 and not host.ready):
                self.reply(_reply_of(request, status))
            else:
                request["again"] = host.ready
                self.submit(request)

    def timed(self):
        return [(host.deadline, host.pid, host.first) for host in self.by_key.values() if not host.ready]

    def sources(self):
        return {host.from_host: host for host in self.by_key.values()}

    def close(self):
        """Hosts end their children's groups when their pipe closes; those that do not are killed. Waits for
        all of them, because only then their processor time counts as irdiff's own.
        """
        for host in self.by_key.values():
            host.close()
        left = {host.pid for host in self.by_key.values()}
        give_up = time.monotonic() + 2
        while left and time.monotonic() < give_up:
            left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
            time.sleep(0.005)
        for host in self.by_key.values():
            _kill_group(host.pid)
        for pid in left:
            os.waitpid(pid, 0)


def memory_is_scarce():
    """True if less than a quarter of the machine's memory is left."""
    with open("/proc/meminfo") as file:
        kib = {words[0]: int(words[1]) for words in map(str.split, file)}
    return kib["MemAvailable:"] < kib["MemTotal:"] // 4


def _deadline(request):
    return time.monotonic() + request["timeout_s"]


def _reply_of(request, status) -> protocol.Reply:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"id": request["id"], "signal": number, "timed_out": request.get("timed_out", False)}


def _kill_group(pid):
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _write(descriptor, message):
    """The reader may be gone."""
    with contextlib.suppress(OSError):
        os.write(descriptor, json.dumps(message).encode() + b"\n")


def _fork_into(request, work):
    """Returns the process id of a child that does `work`, with its own group, bounded memory, and output to a
    file.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):  # the child has done it itself, or is gone
            os.setpgid(pid, pid)
        return pid
    code = 70
    try:
        os.setpgid(0, 0)
        die_with_parent()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        limit = request["memory_bytes"]
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _print_into(request)
        _with_room(work)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _fork_with_pipes(request, others, work):
    """Returns (process id, descriptor to write requests to, descriptor to read replies from) of a child that
    does `work(requests, replies)`. It ends when its parent closes its pipe, so it closes its copies of the
    pipes of `others`, which were started before.
    """
    requests_read, requests_write = os.pipe()
    replies_read, replies_write = os.pipe()

    def begin():
        for descriptor in (requests_write, replies_read):
            os.close(descriptor)
        for other in others:
            other.close()
        work(requests_read, replies_write)

    pid = _fork_into(request, begin)
    os.close(requests_read)
    os.close(replies_write)
    os.set_blocking(replies_read, False)
    return pid, requests_write, replies_read


def _print_into(request):
    """Redirects this process's output to a file of the request's folder."""
    with open(os.path.join(request["folder"], protocol.ERRORS), "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def _with_room(work):
    """CPython keeps frames in blocks of 16 KiB, and maps and unmaps a block whenever calls cross its end. The
    frame of this function is so large that its block has room for all frames above it.
    """
    work()


_with_room.__code__ = _with_room.__code__.replace(co_stacksize=1 << 17)


def serve_worker(requests_fd, replies_fd, operations, hello):
    """`operations` has `key_of` (what a request must have loaded), `prepare` (loads it, and returns whether
    that has served the request too), `serve` (returns whether this process is as it was before) and `forget`
    (called with the process id of each ended host).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is irdiff's to handle
    work = (operations.key_of, operations.prepare, operations.serve, operations.forget)
    run(requests_fd, replies_fd, Hosts, work, hello)


def run(requests_fd, replies_fd, kind, work, hello):
    """Serves until the requests' pipe is closed, by `kind(*work, reply)`: Hosts, or in a host, Children."""
    reply = functools.partial(_write, replies_fd)
    die_with_parent()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    processes = kind(*work, reply)
    reply(hello)
    buffer = b""
    while True:
        times = [timed[0] for timed in processes.timed()] + processes.tidy()
        left_s = max(0.0, min(times) - time.monotonic()) if times else None
        sources = processes.sources()
        ready, _, _ = select.select([requests_fd, wake_read, *sources], [], [], left_s)
        if wake_read in ready:
            os.read(wake_read, 4096)
        for deadline, pid, request in processes.timed():
            if time.monotonic() >= deadline and not request.get("timed_out"):
                request["timed_out"] = True
                _kill_group(pid)
        for source in ready:
            if source in sources:
                processes.receive(sources[source])
        _reap(processes)
        if requests_fd not in ready:
            continue
        chunk = os.read(requests_fd, 1 << 20)
        if not chunk:
            processes.close()
            return
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            processes.submit(json.loads(line))


def _reap(processes):
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            processes.ended(pid, status)
