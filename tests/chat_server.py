"""An endpoint of OpenAI's protocol on this machine, which misbehaves as it is told to."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nX: "
ENDLESS = {  # how it begins, what comes again and again, after so many seconds
    "endless": (HEAD + b"\r\n\r\n", b" " * 65536, 0.0),
    "dripping": (HEAD + b"\r\n\r\n", b" ", 0.05),
    "dripping head": (HEAD, b"x", 0.05),
}
Reply = tuple[int, dict[str, str], bytes]


class Server(ThreadingHTTPServer):
    """faults: what each request in turn suffers, "" for nothing; requests: the questions, in the order they came in."""

    daemon_threads = True

    def __init__(self, faults: list[str], say: Callable[[str], str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.faults, self.say = list(faults), say
        self.requests: list[str] = []
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.payloads: list[dict[str, Any]] = []
        self.answered: list[str] = []
        self.lock, self.gate = threading.Lock(), threading.Event()
        self.gate.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, *_: object) -> None:
        """Clients that hang up are what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = payload["messages"][-1]["content"]
        with self.server.lock:
            self.server.requests.append(question)
            self.server.times.append(time.monotonic())
            self.server.headers.append(dict(self.headers))
            self.server.payloads.append(payload)
            fault = self.server.faults.pop(0) if self.server.faults else ""
        self.server.gate.wait(30)
        if fault == "reset":  # the connection is torn down, not closed
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        if fault == "slow":
            time.sleep(1.0)
        if fault in ENDLESS:
            self._go_on(*ENDLESS[fault])
            return
        status, headers, body = self._reply(fault, question)
        if status == 200 and not fault:
            with self.server.lock:
                self.server.answered.append(question)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + (100 if fault == "cut" else 0)))
        self.end_headers()
        self.wfile.write(body)
        if fault == "cut":  # fewer bytes than were promised
            self.close_connection = True

    def _go_on(self, head: bytes, part: bytes, apart: float) -> None:
        """Write the same again and again, until the other side hangs up."""
        self.close_connection = True
        self.wfile.write(head)
        while True:
            self.wfile.write(part)
            time.sleep(apart)

    def _reply(self, fault: str, question: str) -> Reply:
        if fault.startswith("429"):
            _, _, after = fault.partition(" ")
            return 429, {"Retry-After": after} if after else {}, b"slow down"
        if fault.isdigit():
            return int(fault), {}, f"status {fault} for {self.headers.get('Authorization')}".encode()
        text = "" if fault == "empty" else self.server.say(question)
        choice = {"message": {"content": text}, "finish_reason": "length" if fault == "length" else "stop"}
        counts: Any = {"prompt_tokens": 10, "completion_tokens": 5}
        if fault.startswith("usage "):  # as it is, in JSON or nearly
            counts = json.loads(fault.removeprefix("usage "))
        choices = [choice] * {"none": 0, "two": 2}.get(fault, 1)
        body = json.dumps({"choices": choices, **({} if fault == "uncounted" else {"usage": counts})}).encode()
        if fault == "deep":
            body = b"[" * 200_000
        if fault == "truncated":
            body = body[: len(body) // 2]
        return 200, {"Content-Type": "application/json"}, body[: len(body) // 2] if fault == "cut" else body

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving(faults: list[str] | None = None, say: Callable[[str], str] = str.upper) -> Iterator[Server]:
    """A server that answers each question by `say` of it."""
    server = Server(faults or [], say)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
