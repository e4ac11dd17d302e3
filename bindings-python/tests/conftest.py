"""Fixtures of the driver tests."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest

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
