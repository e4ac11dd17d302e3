"""What an attempt used, read from its result where clients keep it. Unknown stays unknown, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

# The names in use for tokens read and written: OpenAI chat, OpenAI responses and Anthropic, Gemini, Bedrock.
INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "inputTokens")
OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "outputTokens")
HOLDERS = ("usage", "usage_metadata")
#: What a count of tokens may be; anything else is no count.
COUNTS = range(2**53)


def usage_of(result: object) -> dict[str, int] | None:
    """`input_tokens` and `output_tokens`, as far as the result says; `None` when it says nothing."""
    for holder in HOLDERS:
        usage = _get(result, holder)
        if usage is not None:
            tokens = {"input_tokens": _count(usage, INPUT), "output_tokens": _count(usage, OUTPUT)}
            return {name: count for name, count in tokens.items() if count is not None} or None
    return None


def _count(usage: object, names: tuple[str, ...]) -> int | None:
    found = (_get(usage, name) for name in names)
    return next((n for n in found if isinstance(n, int) and not isinstance(n, bool) and n in COUNTS), None)


def _get(value: Any, name: str) -> Any:
    """A field or attribute; whatever reading it does, it is only read for a record."""
    try:
        return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:
        return None
