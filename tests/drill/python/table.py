"""The table that the drill prints: a line for each step, and one more for each difference."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping

from play import Json, SeenStep

WIDTHS = (46, 22, 22, 8, 9)
GREEN, RED, BOLD, FAINT = "32", "31", "1", "2"


class Table:
    """Lines for stdout: coloured and ruled on a terminal, plain text elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._colours = self._terminal and "NO_COLOR" not in os.environ

    def head(self) -> None:
        """The names of the columns."""
        print(self._paint(BOLD, _columns("scenario", "expected", "seen", "attempts", "elapsed s").rstrip()))
        self.rule()

    def rule(self) -> None:
        """A line across."""
        print(self._paint(FAINT, ("─" if self._terminal else "-") * (len(_columns("", "", "", "", "")) + 5)))

    def row(self, title: str, expect: Json, seen: list[SeenStep], failed: list[str]) -> None:
        """One step, and how it went with each client."""
        calls = [call for step in seen for call in step.calls]
        attempts = _joined(sorted({str(call.ended.get("attempts")) for call in calls}))
        what = _joined([seen_words(step, expect) for step in seen])
        self.line((title, expected_words(expect), what, attempts, _span([call.elapsed_ms for call in calls])), failed)

    def line(self, columns: tuple[str, str, str, str, str], failed: list[str]) -> None:
        """One line, and what is wrong with it."""
        self._clear()
        print(_columns(*columns), self._paint(RED, "FAIL") if failed else self._paint(GREEN, "PASS"))
        for difference in failed:
            print(self._paint(RED, f"    {difference}"))
        sys.stdout.flush()

    def status(self, text: str) -> None:
        """What is going on, on a line of its own that does not stay."""
        if self._terminal:
            self._clear()
            print(self._paint(FAINT, text), end="\r", flush=True)

    def _clear(self) -> None:
        if self._terminal:
            print("\x1b[2K", end="")

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours else text


def expected_words(expect: Json) -> str:
    """An end in words: what to do about it and what it is; or how many ended where."""
    target = expect.get("target")
    if isinstance(target, dict):
        return _counted(target)
    return _end(expect["outcome"], target, expect)


def seen_words(step: SeenStep, expect: Json) -> str:
    """What happened, in the same words."""
    if isinstance(expect.get("target"), dict):
        return _counted(Counter(str(call.ended.get("target")) for call in step.calls))
    ends = [(call.ended, call.failure) for call in step.calls]
    return _joined([_end(ended.get("outcome"), ended.get("target"), failure) for ended, failure in ends])


def _end(outcome: str | None, target: str | None, failure: Json) -> str:
    if outcome == "failure":
        return f"{failure.get('category')} {failure.get('kind')}"
    on_backup = outcome == "success" and target not in (None, "primary")
    return f"success on {target}" if on_backup else outcome or "nothing"


def _counted(targets: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {target}" for target, count in sorted(targets.items(), reverse=True))


def _columns(*texts: str) -> str:
    cells = zip(texts, WIDTHS, strict=True)
    return "  ".join(text.ljust(width) for text, width in cells)


def _joined(texts: list[str]) -> str:
    return " or ".join(dict.fromkeys(texts)) or "nothing"


def _span(ms: list[float]) -> str:
    if not ms:
        return "-"
    low, high = f"{min(ms) / 1000:.2f}", f"{max(ms) / 1000:.2f}"
    return low if low == high else f"{low}-{high}"
