"""JSON for the core: whatever a caller's objects hold becomes text that it can read."""

from __future__ import annotations

import json
from typing import Any, cast

from ._reading import safely, well_formed


def as_json(value: object) -> str:
    """JSON for the core; what JSON does not know is shown as text, a lone surrogate as U+FFFD."""
    try:
        return well_formed(json.dumps(value, default=_as_text, allow_nan=False, ensure_ascii=False))
    except (ValueError, RecursionError):  # NaN, a cycle, endless nesting: only a body can hold those
        kept = {name: fact for name, fact in cast("dict[str, Any]", value).items() if name != "body"}
        return well_formed(json.dumps(kept, default=_as_text, allow_nan=False, ensure_ascii=False))


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else safely(repr, value) or "?"
