"""LangChain runnables without retries of their own, so that those of a policy do not multiply with them."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import (
    Runnable,
    RunnableParallel,
    RunnableSequence,
    RunnableSerializable,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.retry import RunnableRetry

from .._errors import ConfigError
from ._clients import following, following_resource, is_client


def quiet(runnable: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """A copy of the runnable in which no model retries by itself, and whose clients keep to the attempt's time.

    Models are found inside of bindings, pipes, parallels and fallbacks; the original stays as it is. Raises
    `ConfigError` for `.with_retry()`, and for a model whose retries cannot be switched off from here.
    """
    if isinstance(runnable, BaseLanguageModel):
        return _model(runnable)
    if isinstance(runnable, RunnableRetry):
        raise ConfigError(
            "runnable", "one with .with_retry()", "a runnable that does not retry: the policy does; leave it out"
        )
    parts = _parts(runnable)
    return runnable.model_copy(update=parts) if parts and isinstance(runnable, RunnableSerializable) else runnable


def _parts(runnable: Runnable[Any, Any]) -> dict[str, Any]:
    """The fields that hold other runnables, and those without retries."""
    if isinstance(runnable, RunnableBindingBase):
        return {"bound": quiet(runnable.bound)}
    if isinstance(runnable, RunnableSequence):
        first, *middle, last = map(quiet, runnable.steps)
        return {"first": first, "middle": middle, "last": last}
    if isinstance(runnable, RunnableParallel):
        return {"steps__": {name: quiet(step) for name, step in runnable.steps__.items()}}
    if isinstance(runnable, RunnableWithFallbacks):
        return {"runnable": quiet(runnable.runnable), "fallbacks": [*map(quiet, runnable.fallbacks)]}
    return {}


def _model(model: BaseLanguageModel[Any]) -> BaseLanguageModel[Any]:
    """A copy of the model over clients that do not retry."""
    clients = {name: following(held) for name, held in vars(model).items() if is_client(held)}
    resources = {
        name: made
        for name, held in vars(model).items()
        if name not in clients and (made := following_resource(held)) is not held
    }
    retries = getattr(model, "max_retries", 0)
    if not clients and not resources and retries:
        raise ConfigError(
            f"{type(model).__name__}.max_retries", retries, "0: the policy retries; make the model with max_retries=0"
        )
    changes: dict[str, Any] = clients | resources
    if "max_retries" in type(model).model_fields:
        changes["max_retries"] = 0
    return model.model_copy(update=changes) if changes else model
