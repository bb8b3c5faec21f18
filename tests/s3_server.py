"""A server that speaks S3, in a process of its own on this machine's loopback, with one empty bucket."""

import contextlib
import subprocess
import sys
import urllib.request
from dataclasses import dataclass

BUCKET = "bucket"
_SERVE = """
import signal
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
signal.pause()
"""


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
        with urllib.request.urlopen(request):
            pass


@contextlib.contextmanager
def serving():
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", _SERVE], **streams) as process:
        try:
            made = Server(process, int(process.stdout.readline()))
            made.ask("PUT", f"/{BUCKET}")
            yield made
        finally:
            process.kill()
