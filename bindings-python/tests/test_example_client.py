"""The example of a complete client, at the gateway: as a module, and as the script that it is."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

from reprieve import trace_of

PATH = Path(__file__).resolve().parents[1] / "examples" / "llm_client.py"


@pytest.fixture
def example(origin: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in [name for name in os.environ if name.startswith("LLM_")]:
        monkeypatch.delenv(name)
    for name, value in {"BASE_URL": f"{origin}/v1", "API_KEY": "k", "MODEL": "m"}.items():
        monkeypatch.setenv(f"LLM_{name}", value)
    spec = importlib.util.spec_from_file_location("llm_client", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "llm_client", module)
    spec.loader.exec_module(module)
    return module


def test_an_answer(example: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("LLM_PRICES", "1/2")
    with caplog.at_level(logging.INFO, "llm"):
        answer = example.LlmClient.from_env().chat("one two three #[retry-ms=20,ok]")
    assert answer.text.startswith("The gateway answers")
    assert (answer.attempts, answer.error) == (2, None)
    assert answer.latency >= 0.02
    line = json.loads(caplog.messages[0])
    assert answer.cost == (line["input_tokens"] + 2 * line["output_tokens"]) / 1e6
    assert (line["record"], line["scene"], line["outcome"], line["attempts"]) == ("call_ended", "chat", "success", 2)


def test_the_backup_answers_when_the_primary_is_not_there(
    example: Any, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_BACKUP_BASE_URL", f"{origin}/v1")
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:1/v1")
    answer = example.LlmClient.from_env().chat("hello")
    assert answer.text.startswith("The gateway answers")
    assert answer.attempts == 4
    assert answer.cost is None


def test_nobody_answers(example: Any) -> None:
    empty = example.LlmClient.from_env().chat_or_empty("nothing #[401]")
    assert (empty.text, empty.attempts, type(empty.error)) == ("", 1, openai.AuthenticationError)
    with pytest.raises(openai.AuthenticationError) as raised:
        example.LlmClient.from_env().chat("nothing #[401]")
    assert trace_of(raised.value) is not None


def test_what_is_missing_is_named(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_MODEL")
    with pytest.raises(KeyError, match="LLM_MODEL"):
        example.LlmClient.from_env()


def test_as_a_script(example: Any) -> None:
    command = [sys.executable, str(PATH), "a script #[ok]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert "The gateway answers" in done.stdout
    assert json.loads(done.stderr)["record"] == "call_ended"
