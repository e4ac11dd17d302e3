"""Fixtures of the driver tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from reprieve import testing


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
