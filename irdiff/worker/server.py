"""The loop of a worker: triton is imported once, then every request is served by a forked child.

A child that crashes, hangs or eats memory ends alone. The parent only forks, watches deadlines and
says on its pipe how each child ended; results travel as files in the folder that the request names.
Nothing outlives its parent: children and what they start die with it (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
import traceback

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Children:
    """Running children by process id, with their deadlines."""

    def __init__(self, reply):
        self.reply = reply
        self.running = {}

    def start(self, request, serve):
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become_child(request, serve)
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # the child has done it itself, or is gone
        self.running[pid] = (request, time.monotonic() + request["timeout_s"])

    def reap(self):
        while self.running:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid not in self.running:
                continue
            request, _ = self.running.pop(pid)
            self._kill_group(pid)  # whatever it left behind
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            timed_out = request.get("timed_out", False)
            self.reply({"id": request["id"], "signal": number, "timed_out": timed_out, "status": status})

    def kill_overdue(self):
        now = time.monotonic()
        for pid, (request, deadline) in self.running.items():
            if now >= deadline and not request.get("timed_out"):
                request["timed_out"] = True
                self._kill_group(pid)

    def next_deadline_s(self):
        if not self.running:
            return None
        return max(0.0, min(deadline for _, deadline in self.running.values()) - time.monotonic())

    def kill_all(self):
        for pid in self.running:
            self._kill_group(pid)

    def _kill_group(self, pid):
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass


def _become_child(request, serve):
    """In the child: its own process group, bounded memory, output to a file; never returns."""
    code = 70
    try:
        os.setpgid(0, 0)
        die_with_parent()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        limit = request["memory_bytes"]
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        log = os.open(
            os.path.join(request["folder"], "stderr"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        os.dup2(log, 1)
        os.dup2(log, 2)
        serve(request)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(requests_fd, replies_fd, serve, hello):
    """Serves until the requests' pipe is closed. `serve(request)` runs in the child."""

    def reply(row):
        try:
            os.write(replies_fd, json.dumps(row).encode() + b"\n")
        except OSError:
            pass  # irdiff is gone; the closed pipe ends the loop

    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is irdiff's to handle
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children = Children(reply)
    reply(hello)
    buffer = b""
    while True:
        ready, _, _ = select.select([requests_fd, wake_read], [], [], children.next_deadline_s())
        if wake_read in ready:
            os.read(wake_read, 4096)
        children.kill_overdue()
        children.reap()
        if requests_fd not in ready:
            continue
        chunk = os.read(requests_fd, 1 << 20)
        if not chunk:
            children.kill_all()
            return
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            children.start(json.loads(line), serve)
