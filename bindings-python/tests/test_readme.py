"""Every Python example of the READMEs runs here, one after another, against the fault gateway.

Where an example is followed by a `text` block, that is what it must print; numbers, ids and bars may differ.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PAGES = [ROOT / "README.md", ROOT / "bindings-python" / "README.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    line: int
    code: str
    printed: str | None


def examples(page: Path) -> Iterator[Example]:
    """The page's Python blocks, each with the text block that comes next, before any other block."""
    text = page.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    for i, block in enumerate(blocks):
        if block[1] == "python":
            follows = blocks[i + 1] if i + 1 < len(blocks) else None
            printed = follows[2] if follows is not None and follows[1] == "text" else None
            yield Example(text.count("\n", 0, block.start(2)), block[2], printed)


def shape(printed: str) -> str:
    """What stays the same from run to run."""
    printed = re.sub(r"\|[ █·]+\|", "|...|", printed)
    printed = re.sub(r"\b[0-9a-f]{32}\b", "ID", printed)
    return re.sub(r"\d+\.\d+(?= s\b)", "N", printed)


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    command = [TARGET / "release" / "gateway", "--until-stdin-closes"]
    if not command[0].exists():  # type: ignore[union-attr]
        pytest.fail("there is no gateway: `make gateway` builds it")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples(page: Path, gateway: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{gateway}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    names: dict[str, Any] = {"__name__": "readme"}
    found = list(examples(page))
    assert found
    for line, code, expected in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, str(page), "exec"), names)
        if expected is not None:
            assert shape(printed.getvalue()) == shape(expected), f"{page.name}:{line}"
