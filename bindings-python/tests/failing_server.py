"""A real server on loopback that fails on demand, below the level that the gateway can: broken headers, resets, cut
bodies; and a port where nobody listens."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

MIB = 1024 * 1024
ERROR = {"error": {"message": "slow down, 请求过于频繁", "type": "tokens", "code": "rate_limit_exceeded"}}


class Failing(BaseHTTPRequestHandler):
    """`/status/429` and the like: the first word says what happens, the second one with what status."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.do_GET()

    def do_GET(self) -> None:
        behaviour, argument = (*self.path.strip("/").split("/"), "", "")[:2]
        getattr(self, f"fail_{behaviour}")(argument)
        self.close_connection = True

    def answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Retry-After", "7")
        self.send_header("X-Twice", "one")
        self.send_header("X-Twice", "two")
        self.send_header("X-Latin", "caf\xe9")
        self.end_headers()
        self.wfile.write(body)

    def fail_status(self, status: str) -> None:
        self.answer(int(status), "application/json", json.dumps(ERROR).encode())

    def fail_html(self, status: str) -> None:
        self.answer(int(status), "text/html", b"<html>Bad Gateway</html>")

    def fail_big(self, status: str) -> None:
        self.answer(int(status), "text/plain", b"x" * (MIB + 1))

    def fail_google(self, status: str) -> None:
        details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}]
        error = {"code": int(status), "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": details}
        self.answer(int(status), "application/json", json.dumps({"error": error}).encode())

    def fail_aws(self, status: str) -> None:
        body = {"__type": "com.amazonaws.sqs#ThrottlingException", "message": "Rate exceeded"}
        self.answer(int(status), "application/x-amz-json-1.0", json.dumps(body).encode())

    def fail_slow(self, _: str) -> None:
        cast("FailingServer", self.server).over.wait()

    def fail_silent(self, _: str) -> None:
        self.wfile.flush()

    def fail_reset(self, _: str) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def fail_cut(self, _: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b'5\r\n{"a":\r\n')

    def log_message(self, format: str, *args: object) -> None:
        pass

    def finish(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().finish()


class FailingServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Failing)
        #: Set when nobody waits any more.
        self.over = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextlib.contextmanager
def failing() -> Iterator[str]:
    """The server, by its address."""
    with FailingServer() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.over.set()
        running.shutdown()


@contextlib.contextmanager
def refusing() -> Iterator[str]:
    """The address of a port that nobody else is given meanwhile, and where nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"
