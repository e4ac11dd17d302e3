"""Bodies that a request reads as it is sent: files are wound back for the next attempt, and what can be read once is
kept, up to a limit."""

# What a body is made of is of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from typing import Any, cast

from .._errors import ConfigError

#: How much is kept of what can be read once.
MOST = 1024 * 1024
#: What is sent again as it is.
WHOLE = (bytes, bytearray, str, list, tuple, dict)


class Body:
    """The parts of one request's body."""

    def __init__(self) -> None:
        self._rewinds: list[Callable[[], object]] = []

    def rewind(self) -> None:
        """Before an attempt: files go back to where they were."""
        for rewind in self._rewinds:
            rewind()

    def files(self, files: Any) -> Any:
        """The files of a multipart request, as the SDK has them: pairs of a name and a file, or of a name and a tuple
        whose second part is the file."""
        if files is None:
            return None
        pairs = cast("Mapping[str, Any]", files).items() if isinstance(files, Mapping) else files
        return [(name, self._file(name, file)) for name, file in pairs]

    def part(self, field: str, part: Any) -> Any:
        """A part that can be sent as often as it takes. Raises `ConfigError` where that cannot be."""
        if part is None or isinstance(part, WHOLE):
            return part
        if _seekable(part):
            position = part.tell()
            self._rewinds.append(lambda: part.seek(position))
            return part
        if callable(getattr(part, "read", None)):
            return _kept(field, part, part.read(MOST + 1))
        if isinstance(part, Iterable):
            return _kept(field, part, _joined(part))
        if isinstance(part, AsyncIterable):
            raise ConfigError(
                field, f"a {type(part).__qualname__}", "what can be sent again: bytes, or a seekable file"
            )
        return part

    def _file(self, name: str, file: Any) -> Any:
        if isinstance(file, tuple) and len(file) > 1:
            filename, content, *rest = file
            return (filename, self.part(f"files.{name}", content), *rest)
        return self.part(f"files.{name}", file)


def _seekable(part: Any) -> bool:
    try:
        return bool(part.seekable())
    except Exception:
        return False


def _joined(parts: Iterable[Any]) -> bytes:
    kept = bytearray()
    for part in parts:
        kept += part.encode() if isinstance(part, str) else part
        if len(kept) > MOST:
            break
    return bytes(kept)


def _kept(field: str, part: Any, read: bytes) -> bytes:
    if len(read) > MOST:
        raise ConfigError(
            field,
            f"a {type(part).__qualname__} of more than {MOST} bytes that can be read once",
            "what can be sent again: bytes, or a seekable file",
        )
    return read
