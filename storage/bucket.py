"""Object storage for lakes of several machines: an S3 bucket (or anything that speaks S3) under a prefix.

A put is durable and visible to everyone when it returns; objects are never changed, only put again with the same bytes. Uses the S3
client that comes with pyarrow; credentials, region and endpoint come from the usual AWS variables and files. Must not know what the
bytes mean.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from schemas.canonical import Sha256
from schemas.errors import ConfigInvalid
from storage import durable

_URL = re.compile(r"s3:/+([a-z0-9][a-z0-9.-]{1,62})(?:/+(.*?))?/*")
_TOGETHER = 8
"""Uploads at once."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object: key under the prefix, length, and when it was last put (seconds since 1970, the server's clock)."""

    key: str
    size: int
    modified_s: float


def is_bucket_url(text: str) -> bool:
    """The text names a bucket (also as a ``Path``, which loses one slash)."""
    return text.startswith("s3:/")


class Bucket:
    """Objects under ``s3://bucket/prefix``. Each process opens its own connections, so an object may cross a fork."""

    def __init__(self, url: str) -> None:
        """Name a bucket; nothing is asked yet.

        Raises:
            ConfigInvalid: the text is no bucket URL.
        """
        found = _URL.fullmatch(url)
        if found is None:
            raise ConfigInvalid("bucket_url", f"{url!r} names no bucket", "for example s3://my-bucket/lake")
        self.base = "/".join(p for p in (found[1], *(found[2] or "").split("/")) if p)
        self._client: tuple[int, Any] | None = None

    def __reduce__(self) -> tuple[type[Bucket], tuple[str]]:
        return Bucket, (self.url,)

    @property
    def url(self) -> str:
        """The canonical URL."""
        return f"s3://{self.base}"

    @property
    def _fs(self) -> Any:
        if self._client is None or self._client[0] != os.getpid():
            options: dict[str, Any] = {"background_writes": False}
            endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
            if endpoint:
                parts = urlsplit(endpoint)
                options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
            if region or endpoint:
                options["region"] = region or "us-east-1"
            self._client = (os.getpid(), fs.S3FileSystem(**options))
        return self._client[1]

    def _path(self, key: str) -> str:
        return f"{self.base}/{key}"

    def put(self, key: str, data: bytes) -> None:
        """Store bytes.

        Raises:
            OSError: nothing was acknowledged.
        """
        durable.hit("upload", key)
        with self._fs.open_output_stream(self._path(key)) as stream:
            stream.write(data)

    def upload(self, files: dict[str, Path]) -> None:
        """Store files under keys, several at once.

        Raises:
            OSError: one was not stored; others may have been.
        """
        for key in files:
            durable.hit("upload", key)
        self._fs  # noqa: B018  opened once, before the threads
        with ThreadPoolExecutor(min(len(files), _TOGETHER) or 1) as pool:
            for done in [pool.submit(self._upload, key, path) for key, path in files.items()]:
                done.result()

    def _upload(self, key: str, path: Path) -> None:
        with self._fs.open_output_stream(self._path(key)) as stream:
            for chunk in durable.read_chunks(path):
                stream.write(chunk)

    def chunks(self, key: str) -> Iterator[bytes]:
        """The bytes of an object.

        Raises:
            FileNotFoundError: there is none.
            OSError: it cannot be read.
        """
        with self._fs.open_input_stream(self._path(key)) as stream:
            while chunk := stream.read(durable.CHUNK):
                yield chunk

    def digest(self, key: str) -> tuple[Sha256, int]:
        """sha256 and length of an object as stored; raises as :meth:`chunks`."""
        digest, size = hashlib.sha256(), 0
        for chunk in self.chunks(key):
            digest.update(chunk)
            size += len(chunk)
        return digest.hexdigest(), size

    def stat(self, key: str) -> StoredObject | None:
        """What is known of an object; None if there is none.

        Raises:
            OSError: the server does not answer.
        """
        info = self._fs.get_file_info(self._path(key))
        return None if info.type != fs.FileType.File else StoredObject(key, info.size, info.mtime_ns / 1e9)

    def list(self, folder: str) -> Iterator[StoredObject]:
        """All objects under a folder of keys, sorted.

        Raises:
            OSError: the server does not answer.
        """
        selector = fs.FileSelector(self._path(folder), recursive=True, allow_not_found=True)
        for info in sorted(self._fs.get_file_info(selector), key=lambda i: str(i.path)):
            if info.type == fs.FileType.File:
                yield StoredObject(info.path[len(self.base) + 1 :], info.size, info.mtime_ns / 1e9)

    def remove(self, key: str) -> None:
        """Remove an object.

        Raises:
            OSError: it is still there.
        """
        durable.hit("unlink", key)
        self._fs.delete_file(self._path(key))
