"""A loopback HTTP server that plays a scripted list of answers, good and bad."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One scripted answer. ``cut`` sends only so many bytes of the promised body; ``drip_s`` waits before every byte."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    cut: int | None = None
    drip_s: float = 0.0


@dataclass
class Server:
    """What was asked, and where."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def serve(script: list[Reply]) -> Iterator[Server]:
    """Serve the answers in order; the last one again and again. The list may be changed meanwhile."""
    place = {"next": 0}
    lock = threading.Lock()
    server = Server("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            with lock:
                reply = script[min(place["next"], len(script) - 1)]
                place["next"] += 1
                server.paths.append(self.path)
                server.headers.append(dict(self.headers.items()))
                server.requests.append(json.loads(body) if self.headers.get("Content-Type") == "application/json" else {"bytes": body})
            time.sleep(reply.wait_s)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            try:
                if reply.drip_s:
                    for byte in reply.body:
                        time.sleep(reply.drip_s)
                        self.wfile.write(bytes([byte]))
                        self.wfile.flush()
                else:
                    self.wfile.write(reply.body[: reply.cut])
            except OSError:
                return
            if reply.cut is not None:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        server.url = f"http://127.0.0.1:{listener.server_address[1]}/v1"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
