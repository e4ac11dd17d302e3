"""What an attempt used, read from its result where clients keep it. Unknown stays unknown, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

# The names in use for tokens read and written: OpenAI chat, OpenAI responses and Anthropic, Gemini, Bedrock.
INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "promptTokenCount", "inputTokens")
OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "candidatesTokenCount", "outputTokens")
HOLDERS = ("usage", "usage_metadata", "usageMetadata")
# Gemini counts what it thought beside what it said; the others count it in.
THOUGHTS = ("thoughts_token_count", "thoughtsTokenCount")
# Tokens read from a cache: OpenAI and Gemini count them into the tokens read, ...
CACHED_WITHIN = (
    "prompt_tokens_details",
    "input_tokens_details",
    "cached_content_token_count",
    "cachedContentTokenCount",
)
CACHED_FIELD = ("cached_tokens",)
# ... Anthropic and Bedrock beside them, and what they write into one as well.
CACHED_BESIDE = ("cache_read_input_tokens", "cacheReadInputTokens")
WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens")
#: What a count of tokens may be; anything else is no count.
COUNTS = range(2**53)


class Billed(NamedTuple):
    """The tokens of one answer, each in one place: what came from a cache, or went into one, is no `input`."""

    input: int
    output: int
    cached: int
    written: int


def usage_of(result: object) -> dict[str, int] | None:
    """`input_tokens` and `output_tokens`, as far as the result says; `None` when it says nothing."""
    usage = holder_of(result)
    if usage is None:
        return None
    tokens = {"input_tokens": _count(usage, INPUT), "output_tokens": _output(usage)}
    return {name: count for name, count in tokens.items() if count is not None} or None


def billed(result: object) -> Billed | None:
    """What a bill is made from; `None` where one of the two main numbers is unknown."""
    usage = holder_of(result)
    read, written = (None, None) if usage is None else (_count(usage, INPUT), _output(usage))
    if read is None or written is None:
        return None
    within = _within(usage)
    beside = _count(usage, CACHED_BESIDE) or 0
    return Billed(max(0, read - within), written, within + beside, _count(usage, WRITTEN) or 0)


def holder_of(result: object) -> Any:
    """Where a result keeps its usage."""
    return next((usage for holder in HOLDERS if (usage := _get(result, holder)) is not None), None)


def _output(usage: object) -> int | None:
    said, thought = _count(usage, OUTPUT), _count(usage, THOUGHTS)
    return said if thought is None else thought + (said or 0)


def _within(usage: object) -> int:
    for name in CACHED_WITHIN:
        found = _get(usage, name)
        count = _counted(found) if _counted(found) is not None else _count(found, CACHED_FIELD)
        if count is not None:
            return count
    return 0


def _count(usage: object, names: tuple[str, ...]) -> int | None:
    return next((n for name in names if (n := _counted(_get(usage, name))) is not None), None)


def _counted(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value in COUNTS else None


def _get(value: Any, name: str) -> Any:
    """A field or attribute; whatever reading it does, it is only read for a record."""
    try:
        return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:
        return None
