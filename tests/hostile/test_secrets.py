"""S14: secrets of the host in five places are found neither inside the sandbox, nor in what a run stores, notes or says in an error."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from media.audio import write_wav
from media.command import Command, Limits, Sandbox
from replay.speech import EndpointSpeech
from replay.tool import Product, ToolEnv
from replay.tools import synthesize_narration
from schemas.errors import EndpointFailed
from tests.replay.studio import Studio

pytestmark = pytest.mark.hostile

PLACES = ("environment", "home", "netrc", "argv", "key")
CANARIES = {place: f"CANARY-{place}-51c09e" for place in PLACES}

LOOK = """
import os, json, stat
found = []
def note(where, data):
    found.append((where, data.decode('utf-8', 'replace')))
for name in os.listdir('/proc'):
    if name.isdigit():
        for part in ('environ', 'cmdline', 'mountinfo'):
            try:
                note(f'/proc/{name}/{part}', open(f'/proc/{name}/{part}', 'rb').read())
            except OSError:
                pass
for top, folders, files in os.walk('/', followlinks=False):
    if top.startswith(('/proc', '/usr', '/opt')):
        folders[:] = []
        continue
    for name in folders + files:
        note('name', os.path.join(top, name).encode())
    for name in files:
        path = os.path.join(top, name)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, 'rb') as file:
                    note(path, file.read(1 << 20))
        except OSError:
            pass
print(json.dumps(found))
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A host with a secret in each place; returns its home."""
    home = tmp_path / CANARIES["home"]
    home.mkdir()
    (home / ".netrc").write_text(f"machine 127.0.0.1 login me password {CANARIES['netrc']}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NETRC", str(home / ".netrc"))
    monkeypatch.setenv("SOME_TOKEN", CANARIES["environment"])
    monkeypatch.setenv("WORKPRINT_SPEECH_API_KEY", CANARIES["key"])
    with (
        subprocess.Popen(["sleep", "60", "0"], executable="/bin/sleep") as idle,
        subprocess.Popen(["/bin/sh", "-c", "sleep 60; :", CANARIES["argv"]]) as other,
    ):
        yield home
        for process in (idle, other):
            process.kill()


def test_inside_the_sandbox_none_is_found(
    host: Path,
    sandbox: Sandbox,
    inside_python: tuple[str, Mapping[str, Path]],
    tmp_path_factory: pytest.TempPathFactory,
    record_property: Callable[[str, object], None],
) -> None:
    program, folders = inside_python
    command = Command(
        argv=(program, "-I", "-S", "/in/look.py"), texts={"look.py": LOOK.encode()}, folders=folders, limits=Limits(wall_s=60)
    )
    done = sandbox.run(command, tmp_path_factory.mktemp("work"))
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert any(where.endswith("/environ") for where, _ in seen)
    assert [(where, place) for where, text in seen for place, canary in CANARIES.items() if canary in text] == []
    record_property("canaries", len(CANARIES))


class Handler(BaseHTTPRequestHandler):
    """Answers with a tone to whoever has the key; repeats the key in its refusals, as careless servers do."""

    status = 200

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        good = self.status == 200 and self.headers.get("Authorization") == f"Bearer {CANARIES['key']}"
        tone = (0.3 * np.sin(np.arange(48_000) / 9)).astype(np.float32)
        body = write_wav(tone, 24_000) if good else str(self.headers).encode()
        self.send_response(200 if good else self.status, None if good else f"no {self.headers.get('Authorization')}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture(params=[200, 401, 503])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), type("One", (Handler,), {"status": request.param}))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_address[1]}/v1", request.param
    made.shutdown()
    made.server_close()


def test_what_a_run_keeps_and_says_holds_none(
    host: Path, sandbox: Sandbox, server: tuple[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The key is sent to the server, and nowhere else: not into the store, the results, the notes, or the error."""
    url, status = server
    studio = Studio(tmp_path_factory.mktemp("studio"), sandbox)
    notes: list[str] = []
    engines = replace(studio.engines, speech=EndpointSpeech(url, "tts-1", sandbox))
    env: ToolEnv = replace(studio.env(), engines=engines, note=notes.append)
    state = studio.planned([("A voice from a server says this.", "x", 1000)])
    said = ""
    try:
        done = synthesize_narration.TOOL.execute(state, {"shots": "all"}, (), env)
        assert isinstance(done, Product)
        assert status == 200
        said = json.dumps(done.results) + repr(done)
    except EndpointFailed as error:
        assert status != 200
        said = str(error) + json.dumps(error.as_json())
    kept = [path for path in studio.root.rglob("*") if path.is_file()]
    assert len(kept) > 5
    leaks = [(path.name, place) for path in kept for place, canary in CANARIES.items() if canary.encode() in path.read_bytes()]
    assert leaks == []
    assert [place for place, canary in CANARIES.items() if canary in said + repr(engines.versions()) + "".join(notes)] == []
