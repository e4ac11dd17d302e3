"""Retries that nobody sees: a client above us that repeats requests by itself multiplies ours."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

#: The header in which generated SDKs count their own retries.
COUNT = "x-stainless-retry-count"

_reported: set[str] = set()


def report(headers: Mapping[str, Any]) -> None:
    """Warns, once for each client, where a request's headers say that it is a client's own retry."""
    count, client = _text(headers.get(COUNT)), _text(headers.get("user-agent"))
    if not count.isdigit() or int(count) == 0 or client in _reported:
        return
    _reported.add(client)
    warnings.warn(
        f"the client {client or 'above'} retries by itself ({COUNT}: {count}), and each of its retries is a call with "
        "all attempts of its policy: turn that off with max_retries=0",
        RuntimeWarning,
        stacklevel=3,
    )


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value or "")
