"""The one client of remote model servers: POSTs to an OpenAI-compatible base address and gives the whole answer back, or a typed error.

Owns transport: the key (from the environment, never logged), limits of time and size, retries of transport faults, and that no request is
sent without a turn of its server's gate (media.gate). What is in an
answer is the caller's business; a poor answer of a model is no fault of the transport and is never asked for again. Redirects are not
followed, proxies and netrc files of the environment are not used. Sound and picture that come back are hostile like any other: decode
them in the sandbox.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from email.utils import formatdate, parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson
import requests

from media.gate import Gate, gate_of, limits_of
from schemas.errors import ConfigInvalid, EndpointFailed, EndpointRefused

MOST_BYTES = 64 * 1024 * 1024
"""Longest answer that is read."""
LONGEST_WAIT_S = 60.0
"""Longest pause a server may ask for between two tries."""
_PASSING = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529))
"""HTTP statuses after which the same request may succeed."""
_SHOWN = 300
"""Characters of a server's own words that are shown in an error."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is and how patiently it is asked.

    Args:
        url: base address such as ``http://127.0.0.1:8000/v1``.
        setting: the configuration key of the address; named in errors.
        key_env: environment variable that holds the key; none is sent when it is empty.
        timeout_s: limit of one request, from connecting to the last byte, seconds.
        attempts: requests sent at most, the first included.
    """

    url: str
    setting: str
    key_env: str | None = None
    timeout_s: float = 120.0
    attempts: int = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer with status 200."""

    body: bytes
    content_type: str
    wall_ms: int
    """Milliseconds of the request that was answered."""
    attempts: int


class EndpointClient:
    """A connection pool to one server. Threads may share it.

    Args:
        gate: who says when a request may be sent; None for callers that hold a turn themselves. Left out, it is the gate of this process
            for the endpoint's setting, whose limits may also ask for another time and other tries.

    Raises:
        ConfigInvalid: the address is no http or https address, or holds a user name, a query or a fragment.
    """

    def __init__(
        self, endpoint: Endpoint, *, gate: Gate | Literal["process"] | None = "process", sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if gate == "process":
            limits = limits_of(endpoint.setting)
            gate = gate_of(endpoint.setting, endpoint.url)
            endpoint = replace(endpoint, timeout_s=limits.timeout_s or endpoint.timeout_s, attempts=limits.attempts or endpoint.attempts)
        self._gate = gate
        self.endpoint = endpoint
        self.host = _host(endpoint)
        self._sleep = sleep
        self._session = requests.Session()
        self._session.trust_env = False

    def post(
        self,
        path: str,
        *,
        json: Any = None,
        form: Mapping[str, str | Sequence[str]] | None = None,
        files: Mapping[str, tuple[str, bytes, str]] | None = None,
        accept: str = "application/json",
        check: Callable[[bytes], object] | None = None,
    ) -> Answer:
        """One request, tried again after faults of the transport.

        Args:
            path: below the base address, e.g. ``chat/completions``.
            check: raises ``EndpointFailed`` on bytes outside the protocol, which are then asked for again.
            json: body as a JSON value; or ``form`` (a sequence repeats its field) and ``files`` (name to file name, bytes, MIME type) for
                a multipart body.

        Raises:
            ConfigInvalid: the key cannot be sent.
            EndpointFailed: no whole answer came within the attempts; a later try may help.
            EndpointRefused: the server refused the request, or what may be asked of it is used up (media.gate.BudgetSpent).
        """
        attempt = 1
        while True:
            try:
                with self._gate.turn() if self._gate is not None else nullcontext():
                    started = time.monotonic()
                    body, content_type = self._once(path, json, form, files, accept, started + self.endpoint.timeout_s)
                    _in_protocol(body, check)
                return Answer(body, content_type, round((time.monotonic() - started) * 1000), attempt)
            except _TryAgain as error:
                if self._gate is not None and error.after_s is not None:
                    self._gate.close_for(min(LONGEST_WAIT_S, error.after_s))
                if attempt >= self.endpoint.attempts:
                    raise error.fault from error
                self._sleep(min(LONGEST_WAIT_S, error.after_s if error.after_s is not None else 0.5 * 2 ** (attempt - 1)))
            attempt += 1

    def _once(
        self,
        path: str,
        json: Any,
        form: Mapping[str, str | Sequence[str]] | None,
        files: Mapping[str, tuple[str, bytes, str]] | None,
        accept: str,
        deadline: float,
    ) -> tuple[bytes, str]:
        headers = {"Accept": accept}
        key = self._key()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        data: Any = form
        if json is not None:
            data = orjson.dumps(json)
            headers["Content-Type"] = "application/json"
        url = f"{self.endpoint.url.rstrip('/')}/{path}"
        limit = self.endpoint.timeout_s
        try:
            with self._session.post(
                url, data=data, files=files, headers=headers, timeout=(min(10.0, limit), limit), stream=True, allow_redirects=False
            ) as response:
                if response.status_code != 200:
                    self._refuse(response)
                body = bytearray()
                for chunk in response.iter_content(65_536):
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise EndpointRefused("endpoint_too_long", f"{self.host} answered more than {MOST_BYTES} bytes", "check the server")
                    if time.monotonic() > deadline:
                        raise _TryAgain(self._fault("endpoint_slow", f"did not finish its answer in {limit:g} s"))
                return bytes(body), response.headers.get("Content-Type", "")
        except requests.RequestException as error:
            slow = isinstance(error, requests.Timeout)
            what = f"gave no answer in {limit:g} s" if slow else f"cannot be reached, or cut its answer ({type(error).__name__})"
            raise _TryAgain(self._fault("endpoint_slow" if slow else "endpoint_unreachable", what)) from error

    def _key(self) -> str:
        name = self.endpoint.key_env
        key = os.environ.get(name, "").strip() if name else ""
        if not (key.isascii() and key.isprintable()):
            raise ConfigInvalid("endpoint_key_invalid", f"the key in {name} has characters that cannot be sent", f"set {name} anew")
        return key

    def _refuse(self, response: requests.Response) -> None:
        status, key = response.status_code, self._key()
        said = next(response.iter_content(_SHOWN + len(key)), b"").decode("utf-8", "replace")
        said = "(its words repeat the key and are not shown)" if key and key in said else said[:_SHOWN].strip()
        words = f"answered HTTP {status}" + (f": {said}" if said else "")
        if status not in _PASSING:
            raise EndpointRefused(
                "endpoint_status", f"{self.host} {words}", f"check the key, the model name and the address in {self.endpoint.setting}"
            )
        raise _TryAgain(self._fault("endpoint_status", words), _seconds(response.headers.get("Retry-After"), response.headers.get("Date")))

    def _fault(self, code: str, what: str) -> EndpointFailed:
        return EndpointFailed(code, f"{self.host} {what}", f"see that the server runs, or change {self.endpoint.setting}")


def _host(endpoint: Endpoint) -> str:
    """The server's name. What may be a secret in an address is not repeated: errors go into rows and logs."""
    if any(mark in endpoint.url for mark in "@?#"):
        raise ConfigInvalid(
            "endpoint_url_invalid",
            f"{endpoint.setting} holds a user name, a query or a fragment",
            "give the plain address; the key comes from the environment",
        )
    try:
        parts = urlsplit(endpoint.url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts.hostname
    except ValueError:
        pass
    raise ConfigInvalid(
        "endpoint_url_invalid", f"{endpoint.setting} is {endpoint.url[:80]!r}", "give a base address such as http://127.0.0.1:8000/v1"
    )


class _TryAgain(Exception):
    """A fault of the transport that may pass."""

    def __init__(self, fault: EndpointFailed, after_s: float | None = None) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.after_s = after_s


def _in_protocol(body: bytes, check: Callable[[bytes], object] | None) -> None:
    if check is None:
        return
    try:
        check(body)
    except EndpointFailed as error:
        raise _TryAgain(error) from error


def _seconds(header: str | None, date: str | None) -> float | None:
    """A Retry-After in seconds; a date counts from that of the answer, by the server's own clock. A past date and nonsense are none."""
    try:
        value = float(header or "")
    except ValueError:
        try:
            value = (parsedate_to_datetime(header or "") - parsedate_to_datetime(date or formatdate(usegmt=True))).total_seconds()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return value if 0 <= value < float("inf") else None
