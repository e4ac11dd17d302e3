"""A stream of a real client that another one joins, at the gateway."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from at_gateway import Drill

from reprieve import Policy, wrap

pytestmark = [pytest.mark.filterwarnings("error")]


@pytest.mark.parametrize("slow", ["slow=600000", "sse-first=600000"], ids=["no answer", "no content"])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.filterwarnings("default")
def test_the_real_client(origin: str, wrapped: bool, slow: str) -> None:
    """The request that comes first has its answer, or its first content, in ten minutes; the other at once."""
    policy = Policy(hedge={"after": 0.2})

    async def main() -> Any:
        drill = Drill(origin)
        async with openai.AsyncOpenAI(
            api_key="none", base_url=drill.url, max_retries=0, default_headers=drill.headers
        ) as client:
            used = wrap(client, policy) if wrapped else client

            async def create() -> Any:
                return await used.chat.completions.create(
                    model="gpt-test",
                    stream=True,
                    messages=[{"role": "user", "content": f"Say hello. #[{slow},ok]"}],
                )

            stream: Any = await create() if wrapped else policy.stream(create)
            chunks = [chunk async for chunk in stream]
        return chunks, stream.trace, drill

    chunks, trace, drill = asyncio.run(main())
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert sorted(r["attempt"] for r in trace.receipts) == [1, 2]
    assert [r["decision"] for r in trace.receipts] == ["superseded", "done"]
    assert len(drill.visits()) == 2
