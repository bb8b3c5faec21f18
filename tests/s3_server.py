"""A server that speaks S3, in a process of its own on this machine's loopback, with one empty bucket."""

import contextlib
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass

BUCKET = "bucket"
_SERVE = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    port: int

    def variables(self):
        """The environment in which `s3://bucket` is here."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_REGION": "us-east-1",
        }

    def ask(self, method, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        with urllib.request.urlopen(request, timeout=10):
            pass


@contextlib.contextmanager
def serving():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    made = Server(process, port)
    try:
        for _ in range(600):
            try:
                made.ask("GET", "/moto-api/")
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        made.ask("PUT", f"/{BUCKET}")
        yield made
    finally:
        process.kill()
        process.wait()
