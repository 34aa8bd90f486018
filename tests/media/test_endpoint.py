"""The client of remote servers: transport faults are tried again, refusals are not, and both end as typed errors."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from media import gate
from media.endpoint import MOST_BYTES, Endpoint, EndpointClient
from media.gate import BudgetSpent
from schemas.errors import ConfigInvalid, EndpointFailed, EndpointRefused, Retry
from tests.media.servers import Reply, serve

GOOD = Reply(b'{"ok": true}')


def client(url: str, pauses: list[float], **changes: object) -> EndpointClient:
    endpoint = Endpoint(url, "run.endpoints.student.endpoint_url", **{"timeout_s": 1.0, "attempts": 3, **changes})  # type: ignore[arg-type]  # a table of literals
    return EndpointClient(endpoint, gate=None, sleep=pauses.append)


def test_an_answer_comes_whole() -> None:
    with serve([GOOD]) as server:
        answer = client(server.url, []).post("chat/completions", json={"a": 1})
    assert (answer.body, answer.attempts, server.paths, server.requests) == (b'{"ok": true}', 1, ["/v1/chat/completions"], [{"a": 1}])


@pytest.mark.parametrize(
    "fault",
    [
        Reply(b"slow down", 429),
        Reply(b"oops", 500),
        Reply(b"bad gateway", 502),
        Reply(b"busy", 503),
        Reply(b'{"ok": true, "cut": "here"}', cut=9),
        Reply(b'{"ok": true}', wait_s=1.6),
        Reply(b"x" * 40, drip_s=0.05),
    ],
    ids=["429", "500", "502", "503", "cut", "late", "dripping"],
)
def test_a_fault_of_the_transport_is_tried_again(fault: Reply) -> None:
    with serve([fault, GOOD]) as server:
        answer = client(server.url, []).post("x", json={})
    assert (answer.body, answer.attempts) == (b'{"ok": true}', 2)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    with serve([Reply(b"no such model", status, {"Location": "http://127.0.0.1:9/"}), GOOD]) as server:
        with pytest.raises(EndpointRefused, match=f"HTTP {status}: no such model") as caught:
            client(server.url, []).post("x", json={})
        assert len(server.requests) == 1
    assert (caught.value.retry, caught.value.code) == (Retry.NEVER, "endpoint_status")


def test_the_last_fault_is_told_when_the_attempts_are_used() -> None:
    pauses: list[float] = []
    with serve([Reply(b"busy", 503)]) as server:
        with pytest.raises(EndpointFailed, match="HTTP 503: busy") as caught:
            client(server.url, pauses).post("x", json={})
        assert len(server.requests) == 3
    assert (caught.value.retry, pauses) == (Retry.BACKOFF, [0.5, 1.0])


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("9999", 60.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.5),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 60.0),
        ("soon", 0.5),
        ("-3", 0.5),
    ],
)
def test_the_server_may_say_when_to_come_back(header: str, pause: float) -> None:
    pauses: list[float] = []
    with serve([Reply(b"", 429, {"Retry-After": header}), GOOD]) as server:
        client(server.url, pauses).post("x", json={})
    assert pauses == [pause]


def test_nobody_listening_is_a_typed_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(EndpointFailed, match="cannot be reached") as caught:
        client(f"http://127.0.0.1:{port}/v1", [], attempts=1).post("x", json={})
    assert caught.value.code == "endpoint_unreachable"


def test_an_answer_outside_the_protocol_is_asked_for_again() -> None:
    def check(body: bytes) -> None:
        if body != b'{"ok": true}':
            raise EndpointFailed("endpoint_protocol", "no JSON")

    with serve([Reply(b"<html>"), GOOD]) as server:
        assert client(server.url, []).post("x", json={}, check=check).attempts == 2


def test_the_key_comes_from_the_environment_and_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDENT_KEY", "sk-canary")
    with serve([Reply(b"bad key", 401)]) as server:
        with pytest.raises(EndpointRefused) as caught:
            client(server.url, [], key_env="STUDENT_KEY").post("x", json={})
        assert server.headers[0]["Authorization"] == "Bearer sk-canary"
    assert "canary" not in str(caught.value) + repr(caught.value.__cause__)


@pytest.mark.parametrize("before", [0, 250, 296])
def test_a_server_that_repeats_the_key_is_not_quoted(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    monkeypatch.setenv("STUDENT_KEY", "sk-canary-of-some-length")
    with (
        serve([Reply(b"." * before + b"no key sk-canary-of-some-length is known", 401)]) as server,
        pytest.raises(EndpointRefused) as caught,
    ):
        client(server.url, [], key_env="STUDENT_KEY").post("x", json={})
    assert "sk-c" not in str(caught.value)


def test_a_key_that_cannot_be_sent_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDENT_KEY", "sk-canary\nX-Other: 1")
    with serve([GOOD]) as server, pytest.raises(ConfigInvalid, match="STUDENT_KEY") as caught:
        client(server.url, [], key_env="STUDENT_KEY").post("x", json={})
    assert ("canary" in str(caught.value), server.requests) == (False, [])


@pytest.mark.parametrize(
    "url", ["http://me:hunter2@127.0.0.1/v1", "https://host/v1?key=hunter2", "https://host/v1#hunter2", "ftp://me:hunter2@[x"]
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        client(url, [])
    assert "hunter2" not in str(caught.value)


def test_the_environments_proxy_and_netrc_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password netrc-canary\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with serve([GOOD]) as server:
        client(server.url, []).post("x", json={})
        assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    "url", ["", "ftp://host/v1", "host:8000", "http://", "http://me:secret@host/v1", "http://[::1", "file:///etc/passwd"]
)
def test_an_address_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"run\.endpoints\.student\.endpoint_url"):
        client(url, [])


def test_an_endless_answer_is_refused() -> None:
    with serve([Reply(b"x" * (MOST_BYTES + 1))]) as server, pytest.raises(EndpointRefused, match="more than"):
        client(server.url, [], timeout_s=30.0).post("x", json={})


@pytest.fixture
def limited() -> Iterator[Callable[..., None]]:
    """Sets the limits of the server behind ``replay.speech.endpoint_url``, and takes them away again."""
    yield lambda **limits: gate.limit({"replay.speech.endpoint_url": gate.ServiceLimits(**limits)})
    gate.limit({})


def speech(url: str) -> EndpointClient:
    return EndpointClient(Endpoint(url, "replay.speech.endpoint_url", timeout_s=5.0, attempts=3), sleep=lambda _: None)


def test_two_clients_of_one_server_share_its_limit(limited: Callable[..., None]) -> None:
    limited(concurrency=1)
    with serve([Reply(b"ok", wait_s=0.2)]) as server:
        began = time.monotonic()
        threads = [threading.Thread(target=speech(server.url).post, args=("x",), kwargs={"json": {}}) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert time.monotonic() - began >= 0.6


def test_every_request_counts_those_sent_again_too(limited: Callable[..., None]) -> None:
    limited(budget_requests=2)
    with serve([Reply(b"busy", 503), GOOD]) as server:
        asked = speech(server.url)
        assert asked.post("x", json={}).attempts == 2
        with pytest.raises(BudgetSpent, match=r"2 of its 2 \(budget_requests\)") as caught:
            asked.post("x", json={})
        assert len(server.requests) == 2
    assert (caught.value.retry, caught.value.code) == (Retry.NEVER, "endpoint_budget_spent")


def test_a_minute_holds_no_more_requests_than_allowed(limited: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MINUTE_S", 0.5)
    limited(requests_per_minute=2)
    with serve([GOOD]) as server:
        asked, began = speech(server.url), time.monotonic()
        for _ in range(3):
            asked.post("x", json={})
    assert time.monotonic() - began >= 0.45


def test_limits_may_ask_for_less_time_and_fewer_tries(limited: Callable[..., None]) -> None:
    limited(timeout_s=0.3, attempts=1)
    with serve([Reply(b"ok", wait_s=0.8)]) as server:
        with pytest.raises(EndpointFailed, match=r"gave no answer in 0\.3 s"):
            speech(server.url).post("x", json={})
        assert len(server.requests) == 1


def test_when_a_server_asks_one_to_wait_all_wait(limited: Callable[..., None]) -> None:
    limited()
    with serve([Reply(b"", 429, {"Retry-After": "0.4"}), GOOD]) as server:
        asked, began = speech(server.url), time.monotonic()
        asked.post("x", json={})
    assert time.monotonic() - began >= 0.4
