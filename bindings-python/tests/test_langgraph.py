"""LangGraph run for real, with calls that fail at the gateway."""

from __future__ import annotations

from typing import Any, TypedDict

import openai
import pytest
from at_gateway import Drill, asker
from failing import at_once
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from reprieve import Policy, testing
from reprieve.integrations.langgraph import retry_policy


class State(TypedDict):
    marker: str
    answer: str | None


class TestLangGraph:
    def graph(self, node: Any, **options: Any) -> Any:
        graph: Any = StateGraph(State)
        graph.add_node("ask", node, **options)
        graph.add_edge(START, "ask")
        graph.add_edge("ask", END)
        return graph.compile()

    def node(self, drill: Drill) -> Any:
        ask = asker(drill)

        def node(state: State) -> dict[str, Any]:
            return {"answer": ask(state["marker"])}

        return node

    def test_a_node_under_a_policy(self, drill: Drill) -> None:
        app = self.graph(at_once()(self.node(drill)))
        assert app.invoke({"marker": "503,retry-ms=5"})["answer"].startswith("The gateway answers")
        assert drill.played() == ["503", "retry-ms=5", "ok"]

    def test_its_retry_policy_asks_ours(self, drill: Drill) -> None:
        retrying = RetryPolicy(retry_on=at_once().is_retriable, initial_interval=0.01, jitter=False)
        app = self.graph(self.node(drill), retry_policy=retrying)
        assert app.invoke({"marker": "429,ok"})["answer"].startswith("The gateway answers")
        with pytest.raises(openai.BadRequestError):
            app.invoke({"marker": "400"})
        assert drill.played() == ["429", "ok", "400"]

    def test_layers_add(self, drill: Drill) -> None:
        policy = at_once()
        app = self.graph(policy(self.node(drill)), retry_policy=retry_policy(policy))
        with pytest.raises(openai.InternalServerError):
            app.invoke({"marker": "500"})
        assert len(drill.visits()) == 3

    def test_a_retry_policy_of_ours(self, drill: Drill) -> None:
        made = retry_policy(Policy(max_attempts=4, backoff={"base": 0.01, "factor": 3, "max": 0.05}))
        assert (made.initial_interval, made.backoff_factor, made.max_interval, made.max_attempts) == (0.01, 3, 0.05, 4)
        app = self.graph(self.node(drill), retry_policy=made)
        with pytest.raises(openai.InternalServerError):
            app.invoke({"marker": "500"})
        assert len(drill.visits()) == 4

    def test_it_is_made_of_whatever_is_a_policy(self) -> None:
        assert retry_policy({"max_attempts": 2}).max_attempts == retry_policy("router").max_attempts == 2
        nothing: Any = None
        with pytest.raises(ValueError, match="policy: None is not allowed; it takes a Policy"):
            retry_policy(nothing)

    @pytest.mark.parametrize(
        ("backoff", "waits"),
        [
            ({"kind": "constant", "base": 2, "max": 2}, (2.0, 1.0, 2.0)),
            ({"kind": "linear", "base": 1, "max": 9}, (1.0, 2.0, 9.0)),
            ({"kind": "schedule", "delays": [1, 5, 3]}, (1.0, 2.0, 5.0)),
            ({"kind": "decorrelated", "base": 1, "max": 7}, (1.0, 2.0, 7.0)),
        ],
    )
    def test_its_waits(self, backoff: Any, waits: tuple[float, float, float]) -> None:
        made = retry_policy(Policy(backoff=backoff))
        assert (made.initial_interval, made.backoff_factor, made.max_interval) == waits

    def test_an_interrupt_goes_through(self) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        calls = []

        def node(state: State) -> dict[str, Any]:
            calls.append(state["marker"])
            return {"answer": interrupt("may I?")}

        graph: Any = StateGraph(State)
        graph.add_node("ask", at_once(retry_on=["unknown", "timeout"])(node))
        graph.add_edge(START, "ask")
        app = graph.compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        with testing.virtual():
            asked = app.invoke({"marker": "x"}, config)
            assert asked["__interrupt__"][0].value == "may I?"
            assert app.invoke(Command(resume="yes"), config)["answer"] == "yes"
        assert calls == ["x", "x"]
