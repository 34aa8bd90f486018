"""Real servers of our own: a Postgres reached over a socket, an S3 over loopback. Tests skip, and say why, where a part is missing.

Debian: ``apt-get install postgresql``; Python: ``pip install 'psycopg[binary]' 'moto[server]'``.
"""

from __future__ import annotations

import glob
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_NUMBERS = itertools.count()


def _program(name: str) -> str | None:
    """A Postgres program: on the path, or where Debian keeps the newest release."""
    return shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Socket folder of a Postgres server."""
    pytest.importorskip("psycopg", reason="the Postgres driver is not installed (pip install 'psycopg[binary]')")
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("Postgres is not installed (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    drop: list[str] = []
    if os.geteuid() == 0:  # Postgres refuses to run as root
        os.chown(folder, 65534, 65534)
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    data = str(folder / "data")
    try:
        subprocess.run([*drop, initdb, "-D", data, "-U", "lake", "-A", "trust", "--no-sync"], check=True, capture_output=True)
        options = f"-k {folder} -c listen_addresses='' -c max_connections=60"
        start = [*drop, pg_ctl, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start"]
        subprocess.run(start, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield str(folder)
        finally:
            subprocess.run([*drop, pg_ctl, "-D", data, "-m", "immediate", "stop"], check=True, capture_output=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(server: str) -> str:
    """URL of a fresh database."""
    import psycopg

    name = f"lake{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(f"host={server} user=lake dbname=postgres", autocommit=True) as con:
        con.execute(f"create database {name}".encode())
    return f"postgresql+psycopg://lake@/{name}?host={server}"


_S3 = """
import sys, time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Address of an S3 server in a process of its own."""
    pytest.importorskip("moto", reason="no S3 server is installed (pip install 'moto[server]')")
    path = os.pathsep.join(p for p in sys.path if p)
    with subprocess.Popen(
        [sys.executable, "-c", _S3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().split()
        yield f"http://{host}:{port}"
        process.kill()


@pytest.fixture
def bucket(s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a fresh bucket, with the environment that reaches it; working folders lie under ``tmp_path``."""
    from pyarrow import fs

    for name, value in {
        "AWS_ENDPOINT_URL": s3_endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
        "WORKPRINT_CACHE": str(tmp_path / "here"), "AWS_EC2_METADATA_DISABLED": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    name = f"lake-{os.getpid()}-{next(_NUMBERS)}"
    scheme, _, address = s3_endpoint.partition("://")
    client = fs.S3FileSystem(endpoint_override=address, scheme=scheme, allow_bucket_creation=True, region="us-east-1")
    client.create_dir(name)
    return f"s3://{name}/films/lake"
