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
# Embeddings say how much they have read, and that this is all.
TOTAL = ("total_tokens", "total_token_count", "totalTokenCount")
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
    return main_of(details_of(result))


def details_of(result: object) -> dict[str, int]:
    """The same, and what of it has to do with a cache."""
    usage = holder_of(result)
    if usage is None:
        return {}
    counts = {
        "input_tokens": _count(usage, INPUT),
        "output_tokens": _output(usage),
        "cached_within": _within(usage),
        "cached_beside": _count(usage, CACHED_BESIDE),
        "written": _count(usage, WRITTEN),
    }
    return {name: count for name, count in counts.items() if count is not None}


def main_of(details: Mapping[str, int]) -> dict[str, int] | None:
    """The two numbers that records have."""
    return {name: details[name] for name in ("input_tokens", "output_tokens") if name in details} or None


def billed(details: Mapping[str, int]) -> Billed | None:
    """What a bill is made from; `None` where one of the two main numbers is unknown."""
    if "input_tokens" not in details or "output_tokens" not in details:
        return None
    within, beside = details.get("cached_within", 0), details.get("cached_beside", 0)
    read = max(0, details["input_tokens"] - within)
    return Billed(read, details["output_tokens"], within + beside, details.get("written", 0))


def holder_of(result: object) -> Any:
    """Where a result keeps its usage."""
    return next((usage for holder in HOLDERS if (usage := _get(result, holder)) is not None), None)


def _output(usage: object) -> int | None:
    said, thought = _count(usage, OUTPUT), _count(usage, THOUGHTS)
    if said is None and thought is None:
        read = _count(usage, INPUT)
        return 0 if read is not None and _count(usage, TOTAL) == read else None
    return (thought or 0) + (said or 0)


def _within(usage: object) -> int | None:
    for name in CACHED_WITHIN:
        found = _get(usage, name)
        count = _counted(found) if _counted(found) is not None else _count(found, CACHED_FIELD)
        if count is not None:
            return count
    return None


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
