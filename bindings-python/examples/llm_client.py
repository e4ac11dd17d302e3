"""A complete client for a chat model: retries, a backup, cost, and a line of log for each call. Take it and change it.

    LLM_BASE_URL=https://api.openai.com/v1 LLM_API_KEY=... LLM_MODEL=gpt-5 python llm_client.py "Why is the sky blue?"

`LLM_BACKUP_BASE_URL`, `LLM_BACKUP_API_KEY` and `LLM_BACKUP_MODEL` say where to ask when the primary fails; one of them
is enough, and the others are the primary's. `LLM_PRICES=1.25/10` is what a million tokens cost, read and written.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass

import openai
from openai.types.chat import ChatCompletion

from reprieve import Policy, current_attempt

log = logging.getLogger("llm")


@dataclass(frozen=True)
class Model:
    """A model, and the server it is asked on."""

    client: openai.OpenAI
    name: str

    @staticmethod
    def from_env(prefix: str) -> Model:
        names = ("BASE_URL", "API_KEY", "MODEL")
        url, key, model = (os.environ.get(prefix + name) or os.environ["LLM_" + name] for name in names)
        return Model(openai.OpenAI(base_url=url, api_key=key, max_retries=0), model)  # one engine of retries is enough

    def ask(self, question: str) -> ChatCompletion:
        attempt = current_attempt()
        return self.client.chat.completions.create(
            model=self.name,
            messages=[{"role": "user", "content": question}],
            timeout=attempt.timeout if attempt else None,  # never more than the call has left
        )


@dataclass(frozen=True)
class Answer:
    """What a call came to. `latency` is in seconds, `cost` is `None` where it is not known."""

    text: str
    attempts: int
    latency: float
    cost: float | None
    error: Exception | None


class LlmClient:
    def __init__(self, primary: Model, backup: Model | None = None, prices: tuple[float, ...] = ()) -> None:
        policy = Policy.preset("llm").replace(total_timeout="60s")  # 3 attempts, then 2 on the backup; breakers
        if backup is None:
            policy = policy.replace(targets=[{"id": "primary"}])
        self._policy = policy.bind(scene="chat", targets={"backup": backup.ask} if backup else None)
        self._primary, self._prices = primary, prices

    @staticmethod
    def from_env() -> LlmClient:
        has_backup = any(name.startswith("LLM_BACKUP_") for name in os.environ)
        prices = [float(price) for price in os.environ.get("LLM_PRICES", "").split("/") if price]
        return LlmClient(Model.from_env("LLM_"), Model.from_env("LLM_BACKUP_") if has_backup else None, tuple(prices))

    def chat(self, question: str) -> Answer:
        """The answer; raises the client's own exception where there is none, with the trace attached."""
        answer = self.chat_or_empty(question)
        if answer.error is not None:
            raise answer.error
        return answer

    def chat_or_empty(self, question: str) -> Answer:
        """The answer, or one with an empty text and the error."""
        result = self._policy.execute(self._primary.ask, question)
        log.info(result.trace.lines[-1])
        text = result.value.choices[0].message.content if result.value else None
        return Answer(text or "", result.attempts, result.latency, self._cost(result.usage), result.error)

    def _cost(self, usage: dict[str, int]) -> float | None:
        if len(usage) < 2 or len(self._prices) < 2:
            return None
        return (usage["input_tokens"] * self._prices[0] + usage["output_tokens"] * self._prices[1]) / 1e6


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)
    print(LlmClient.from_env().chat_or_empty(" ".join(sys.argv[1:])))
