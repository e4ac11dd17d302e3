"""Evidence from real clients, against a real server on loopback that fails on demand."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import socket
import ssl
import struct
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import aiohttp
import anthropic
import botocore.config
import botocore.session
import google.api_core.exceptions as google_exceptions
import grpc
import grpc.aio
import httpx
import httpx2
import openai
import pytest
import requests
import urllib3
from at_gateway import in_the_end
from google import genai
from google.rpc import error_details_pb2  # type: ignore[import-untyped]

from reprieve._evidence import evidence_of

Evidence = dict[str, Any]
Client = Callable[..., object]
MIB = 1024 * 1024
ERROR = {"error": {"message": "slow down, 请求过于频繁", "type": "tokens", "code": "rate_limit_exceeded"}}
PATIENT, SHORT = 60.0, 0.1
#: Set when nobody waits any more.
OVER = threading.Event()

# --- a server that fails on demand: /<behaviour>/<argument>/... ------------------------------------------------------


class Failing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.do_GET()

    def do_GET(self) -> None:
        behaviour, argument = (*self.path.strip("/").split("/"), "", "")[:2]
        getattr(self, f"fail_{behaviour}")(argument)
        self.close_connection = True

    def answer(self, status: int, kind: str, body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
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
        OVER.wait()

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

    def fail_short(self, _: str) -> None:
        self.answer(200, "application/json", b'{"a":', length=100)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def finish(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().finish()


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with QuietServer(("127.0.0.1", 0), Failing) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        OVER.set()
        running.shutdown()


@pytest.fixture(scope="module")
def refused() -> Iterator[str]:
    """A port that nobody else is given meanwhile, and where nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


def failure_of(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    pytest.fail("the call succeeded")


def seen(call: Callable[[], object]) -> Evidence:
    evidence = evidence_of(failure_of(call))
    json.dumps(evidence, default=lambda raw: raw.decode())  # plain values only
    return evidence


# --- the clients -----------------------------------------------------------------------------------------------------


def call_openai(url: str, timeout: float = PATIENT) -> object:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0, timeout=timeout) as client:
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "429"}])


def call_anthropic(url: str, timeout: float = PATIENT) -> object:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, timeout=timeout) as client:
        return client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "429"}])


def call_openai_async(url: str, timeout: float = PATIENT) -> object:
    limits = httpx2.Timeout(timeout, connect=PATIENT)

    async def main() -> object:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0, timeout=limits) as client:
            return await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])

    return asyncio.run(main())


def call_httpx(url: str, timeout: float = PATIENT) -> object:
    return httpx.get(url, timeout=timeout).raise_for_status()


def call_httpx2(url: str, timeout: float = PATIENT) -> object:
    return httpx2.get(url, timeout=timeout).raise_for_status()


def call_requests(url: str, timeout: float = PATIENT) -> object:
    requests.get(url, timeout=timeout).raise_for_status()
    return None


def call_urllib3(url: str, timeout: float = PATIENT) -> object:
    with urllib3.PoolManager(retries=False, timeout=timeout) as pool:
        return pool.request("GET", url)


def call_urllib(url: str, timeout: float = PATIENT) -> object:
    return urllib.request.urlopen(url, timeout=timeout).read()


def call_aiohttp(url: str, timeout: float = PATIENT) -> object:
    async def main() -> object:
        limits = aiohttp.ClientTimeout(total=timeout)
        async with aiohttp.ClientSession(timeout=limits) as session, session.get(url) as response:
            response.raise_for_status()
            return await response.read()

    return asyncio.run(main())


def call_botocore(url: str, timeout: float = PATIENT) -> object:
    config = botocore.config.Config(
        retries={"total_max_attempts": 1}, read_timeout=timeout, connect_timeout=timeout, parameter_validation=False
    )
    client = botocore.session.get_session().create_client(
        "sqs", "us-east-1", endpoint_url=url, aws_access_key_id="k", aws_secret_access_key="s", config=config
    )
    return client.list_queues()


def call_genai(url: str, timeout: float = PATIENT) -> object:
    options = genai.types.HttpOptions(base_url=url, timeout=int(timeout * 1000))
    with genai.Client(api_key="k", http_options=options) as client:
        return client.models.generate_content(model="m", contents="x")


CLIENTS: dict[str, Client] = {
    name.removeprefix("call_"): call for name, call in sorted(globals().items()) if name.startswith("call_")
}
every_client = pytest.mark.parametrize("call", CLIENTS.values(), ids=CLIENTS.keys())


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("call", [CLIENTS[name] for name in names], ids=names)


# --- answers ---------------------------------------------------------------------------------------------------------

ANSWERING = [name for name in CLIENTS if name != "urllib3"]  # urllib3 raises for no status


@only(*ANSWERING)
@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_a_status_and_its_headers(server: str, call: Client, status: int) -> None:
    evidence = seen(lambda: call(f"{server}/status/{status}"))
    assert evidence["status"] == status
    assert ["retry-after", "7"] in evidence["headers"]
    assert all(name == name.lower() for name, _ in evidence["headers"])
    assert "cancelled" not in evidence
    assert "os_code" not in evidence


@only(*ANSWERING)
def test_headers_that_are_not_utf8(server: str, call: Client) -> None:
    headers = dict(seen(lambda: call(f"{server}/status/503"))["headers"])
    assert headers["x-latin"].startswith("caf")


@only("httpx", "httpx2", "urllib", "aiohttp")
def test_repeated_headers_stay_repeated(server: str, call: Client) -> None:
    headers = seen(lambda: call(f"{server}/status/503"))["headers"]
    assert [value for name, value in headers if name == "x-twice"] == ["one", "two"]


BODIES: dict[str, object] = {
    "openai": ERROR["error"],  # the SDK unwraps it
    "openai_async": ERROR["error"],
    "anthropic": ERROR,
    "genai": ERROR,
    "requests": json.dumps(ERROR).encode(),
    "httpx": json.dumps(ERROR).encode(),
    "httpx2": json.dumps(ERROR).encode(),
    "aiohttp": None,  # raise_for_status does not read it
    "urllib": None,  # is still to be read
}


@only(*BODIES)
def test_the_body_as_the_client_gives_it(server: str, call: Client, request: pytest.FixtureRequest) -> None:
    expected = BODIES[request.node.callspec.id]
    assert seen(lambda: call(f"{server}/status/429")).get("body") == expected


@only("openai", "openai_async", "anthropic", "requests", "httpx", "httpx2")
def test_a_body_that_is_no_json(server: str, call: Client) -> None:
    evidence = seen(lambda: call(f"{server}/html/502"))
    assert evidence["status"] == 502
    assert evidence["body"] in ("<html>Bad Gateway</html>", b"<html>Bad Gateway</html>")


@only(*(name for name in ANSWERING if name != "genai"))
def test_a_body_over_a_mebibyte_is_absent(server: str, call: Client) -> None:
    assert "body" not in seen(lambda: call(f"{server}/big/500"))


def test_genai_which_wraps_the_text_gives_no_oversized_body_either(server: str) -> None:
    evidence = seen(lambda: call_genai(f"{server}/big/500"))
    assert evidence["status"] == 500
    assert len(str(evidence.get("body", ""))) <= MIB


def test_openai_names_code_type_and_message(server: str) -> None:
    evidence = seen(lambda: call_openai(f"{server}/status/429"))
    assert evidence["provider_code"] == "rate_limit_exceeded"
    assert evidence["provider_type"] == "tokens"
    assert evidence["message"] == "slow down, 请求过于频繁"
    assert evidence["error_types"][:2] == ["openai.RateLimitError", "openai.APIStatusError"]


def test_anthropic_names_type_and_message(server: str) -> None:
    evidence = seen(lambda: call_anthropic(f"{server}/status/529"))
    assert evidence["provider_type"] == "tokens"
    assert evidence["message"] == "slow down, 请求过于频繁"
    assert evidence["error_types"][0] == "anthropic.OverloadedError"


def test_genai_names_its_status(server: str) -> None:
    evidence = seen(lambda: call_genai(f"{server}/google/429"))
    assert evidence["provider_code"] == "RESOURCE_EXHAUSTED"
    assert evidence["message"] == "quota"
    assert evidence["body"]["error"]["details"][0]["retryDelay"] == "12s"


def test_genai_prose_is_no_code(server: str) -> None:
    assert "provider_code" not in seen(lambda: call_genai(f"{server}/html/502"))


def test_botocore_names_its_code(server: str) -> None:
    evidence = seen(lambda: call_botocore(f"{server}/aws/400"))
    assert evidence["provider_code"] == "ThrottlingException"
    assert evidence["message"] == "Rate exceeded"
    assert evidence["status"] == 400
    assert evidence["body"]["Error"]["Code"] == "ThrottlingException"
    assert "ResponseMetadata" not in evidence["body"]


def test_a_falsy_response_is_a_response(server: str) -> None:
    error = failure_of(lambda: call_requests(f"{server}/status/500"))
    assert not cast(requests.HTTPError, error).response
    assert evidence_of(error)["status"] == 500


def test_an_unread_body_is_not_read(server: str) -> None:
    response = requests.get(f"{server}/status/500", stream=True, timeout=PATIENT)
    evidence = seen(response.raise_for_status)
    assert (evidence["status"], "body" in evidence, response.raw.tell()) == (500, False, 0)
    response.close()
    with httpx.stream("GET", f"{server}/status/500", timeout=PATIENT) as streamed:
        assert "body" not in seen(streamed.raise_for_status)
        assert not streamed.is_stream_consumed
    error = failure_of(lambda: urllib.request.urlopen(f"{server}/status/500"))
    assert "body" not in evidence_of(error)
    assert json.loads(cast(urllib.error.HTTPError, error).read()) == ERROR


def test_nothing_warns(server: str) -> None:
    error = failure_of(lambda: call_aiohttp(f"{server}/status/500"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evidence_of(error)["status"] == 500


# --- Google and gRPC -------------------------------------------------------------------------------------------------


def test_google_over_rest(server: str) -> None:
    response = requests.get(f"{server}/google/429", timeout=PATIENT)
    evidence = evidence_of(google_exceptions.from_http_response(response))
    assert evidence["status"] == 429
    assert ["retry-after", "7"] in cast(list[list[str]], evidence["headers"])
    assert b"retryDelay" in cast(bytes, evidence["body"])


def test_google_over_grpc() -> None:
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(12_500)
    quota = error_details_pb2.QuotaFailure()
    violation = quota.violations.add(quota_id="PerDay")
    violation.quota_dimensions["model"] = "m"
    error = google_exceptions.from_grpc_status(grpc.StatusCode.RESOURCE_EXHAUSTED, "used up", details=[retry, quota])
    evidence: Evidence = evidence_of(error)
    assert (evidence["status"], evidence["provider_code"]) == (429, "RESOURCE_EXHAUSTED")
    assert evidence["message"] == "used up"
    kind = "type.googleapis.com/google.rpc."
    assert evidence["body"]["error"]["details"] == [
        {"@type": kind + "RetryInfo", "retryDelay": "12.500000000s"},
        {
            "@type": kind + "QuotaFailure",
            "violations": [
                {
                    "@type": kind + "QuotaFailure.Violation",
                    "quotaId": "PerDay",
                    "quotaDimensions": {"model": "m"},
                }
            ],
        },
    ]


class Exhausted(grpc.GenericRpcHandler):
    def service(self, handler_call_details: object) -> Any:
        def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
            context.set_trailing_metadata((("retry-after", "3"), ("x-bin", b"\xff\x00")))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "out of tokens")

        return grpc.unary_unary_rpc_method_handler(handle)


@pytest.fixture
def grpc_port() -> Iterator[int]:
    running = grpc.server(concurrent.futures.ThreadPoolExecutor(1), handlers=[Exhausted()])
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    yield port
    running.stop(None)


def test_grpc(grpc_port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        evidence = seen(lambda: channel.unary_unary("/s/m")(b"", timeout=PATIENT))
    check_grpc(evidence)


def test_grpc_aio(grpc_port: int) -> None:
    async def main() -> object:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
            return await cast(Awaitable[object], channel.unary_unary("/s/m")(b"", timeout=PATIENT))

    check_grpc(seen(lambda: asyncio.run(main())))


def check_grpc(evidence: Evidence) -> None:
    assert evidence["provider_code"] == "RESOURCE_EXHAUSTED"
    assert "status" not in evidence
    assert evidence["message"] == "out of tokens"
    assert ["retry-after", "3"] in evidence["headers"]
    assert ["x-bin", "\xff\x00"] in evidence["headers"]
    assert "grpc.RpcError" in evidence["error_types"]


def test_grpc_refused(refused: str) -> None:
    with grpc.insecure_channel(refused.removeprefix("http://")) as channel:
        assert seen(lambda: channel.unary_unary("/s/m")(b"", timeout=PATIENT))["provider_code"] == "UNAVAILABLE"


# --- no answer -------------------------------------------------------------------------------------------------------

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
