"""What any test may ask for: the gateway, a virtual clock, no garbage collector."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest
from at_gateway import Drill, gateway
from failing_server import failing, refusing

from reprieve import testing


def pytest_collection_finish() -> None:
    """What the SDKs have loaded by now stays, and is not looked through each time that a test collects garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _let_go() -> Iterator[None]:
    """What the tests of one file have left open is let go of before those of another are watched."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """A gateway for the tests of one file."""
    with gateway() as found:
        yield found


@pytest.fixture
def drill(origin: str) -> Drill:
    """What this test alone asks of it."""
    return Drill(origin)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server that fails in ways that the gateway cannot."""
    with failing() as found:
        yield found


@pytest.fixture(scope="module")
def refused() -> Iterator[str]:
    """The address of a port where nobody listens."""
    with refusing() as found:
        yield found


@pytest.fixture
def clock() -> Iterator[testing.VirtualClock]:
    """Every call runs on a virtual clock."""
    with testing.virtual() as virtual:
        yield virtual


@pytest.fixture
def no_gc() -> Iterator[None]:
    """Only reference counts free anything: what is still there is in a cycle, or held."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
