"""Evidence from Google's clients, over REST and over gRPC, and from gRPC itself."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Iterator
from typing import Any, cast

import google.api_core.exceptions as google_exceptions
import grpc
import grpc.aio
import pytest
import requests
from evidence_clients import PATIENT, Evidence, seen
from google.rpc import error_details_pb2  # type: ignore[import-untyped]

from reprieve._evidence import evidence_of


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
