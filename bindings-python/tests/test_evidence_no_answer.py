"""Evidence from real clients where no answer came, or none that was whole: each names the phase in its own words."""

from __future__ import annotations

import ssl

import pytest
from at_gateway import in_the_end
from evidence_clients import Client, call_aiohttp, call_httpx, every_client, seen

from reprieve._evidence import evidence_of

SHORT = 0.1

PHASES = {  # client: (refused, timed out, cut in the body)
    "openai": ("httpx2.ConnectError", "httpx2.ReadTimeout", "httpx2.RemoteProtocolError"),
    "openai_async": ("httpx2.ConnectError", "httpx2.ReadTimeout", "httpx2.RemoteProtocolError"),
    "anthropic": ("httpx2.ConnectError", "httpx2.ReadTimeout", "httpx2.RemoteProtocolError"),
    "httpx": ("httpx.ConnectError", "httpx.ReadTimeout", "httpx.RemoteProtocolError"),
    "httpx2": ("httpx2.ConnectError", "httpx2.ReadTimeout", "httpx2.RemoteProtocolError"),
    "genai": ("httpx2.ConnectError", "httpx2.ReadTimeout", "httpx2.RemoteProtocolError"),
    "requests": (
        "requests.exceptions.ConnectionError",
        "requests.exceptions.ReadTimeout",
        "requests.exceptions.ChunkedEncodingError",
    ),
    "urllib3": (
        "urllib3.exceptions.NewConnectionError",
        "urllib3.exceptions.ReadTimeoutError",
        "urllib3.exceptions.ProtocolError",
    ),
    "urllib": ("urllib.error.URLError", "builtins.TimeoutError", "http.client.IncompleteRead"),
    "aiohttp": (
        "aiohttp.client_exceptions.ClientConnectorError",
        "builtins.TimeoutError",
        "aiohttp.client_exceptions.ClientPayloadError",
    ),
    "botocore": (
        "botocore.exceptions.EndpointConnectionError",
        "botocore.exceptions.ReadTimeoutError",
        "botocore.exceptions.ConnectionClosedError",
    ),
}


def phase(request: pytest.FixtureRequest, index: int) -> str:
    return PHASES[request.node.callspec.id][index]


@every_client
def test_refused(refused: str, call: Client, request: pytest.FixtureRequest) -> None:
    evidence = seen(lambda: call(refused))
    assert phase(request, 0) in evidence["error_types"]
    assert "builtins.ConnectionRefusedError" in evidence["error_types"] or call is call_aiohttp
    assert evidence["os_code"] == "ECONNREFUSED"
    assert "status" not in evidence


@every_client
def test_timed_out(server: str, call: Client, request: pytest.FixtureRequest) -> None:
    expected = phase(request, 1)
    # Where the machine stands still, it may be the connection that takes too long.
    evidence = in_the_end(lambda: seen(lambda: call(f"{server}/slow", SHORT)), lambda e: expected in e["error_types"])
    assert expected in evidence["error_types"]
    assert "cancelled" not in evidence  # aiohttp's comes out of a CancelledError
    assert "status" not in evidence


@every_client
def test_reset(server: str, call: Client) -> None:
    evidence = seen(lambda: call(f"{server}/reset"))
    assert evidence["os_code"] == "ECONNRESET"
    assert "builtins.ConnectionResetError" in evidence["error_types"] or call is call_aiohttp


@every_client
def test_closed_without_an_answer(server: str, call: Client) -> None:
    names = " ".join(seen(lambda: call(f"{server}/silent"))["error_types"])
    assert any(word in names for word in ("RemoteProtocolError", "RemoteDisconnected", "ServerDisconnectedError"))


@every_client
def test_cut_in_a_chunked_body(server: str, call: Client, request: pytest.FixtureRequest) -> None:
    evidence = seen(lambda: call(f"{server}/cut"))
    assert phase(request, 2) in evidence["error_types"]
    assert "status" not in evidence  # aiohttp's parser says 400, the server said 200


@every_client
def test_a_name_that_does_not_resolve(call: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):  # a proxy would be asked to resolve it
        monkeypatch.setenv(name, "*")
    evidence = seen(lambda: call("http://nonexistent.invalid"))
    assert evidence["os_code"] in ("ENOTFOUND", "EAI_AGAIN")


def test_a_certificate_has_the_reason_of_openssl() -> None:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    error.reason = "CERTIFICATE_VERIFY_FAILED"
    assert evidence_of(error)["os_code"] == "CERTIFICATE_VERIFY_FAILED"  # not EPERM, which errno 1 is elsewhere


def test_an_unfinished_handshake(server: str) -> None:
    evidence = seen(lambda: call_httpx(server.replace("http:", "https:")))
    assert "ssl.SSLError" in evidence["error_types"]
    assert evidence.get("os_code") != "EPERM"
