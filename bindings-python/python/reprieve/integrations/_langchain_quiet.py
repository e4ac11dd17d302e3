"""LangChain runnables without retries of their own, so that those of a policy do not multiply with them."""

from __future__ import annotations

from functools import cached_property
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
from langchain_core.runnables.configurable import DynamicRunnable, RunnableConfigurableAlternatives
from langchain_core.runnables.retry import RunnableRetry

from .._errors import ConfigError
from ._clients import following, following_resource, is_client


def quiet(runnable: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """A copy of the runnable in which no model retries by itself, and whose clients keep to the attempt's time.

    Models are found inside of bindings, pipes, parallels, fallbacks and what is configurable; the original stays as it
    is. Raises `ConfigError` for `.with_retry()`, and for a model whose retries cannot be switched off from here.
    """
    if isinstance(runnable, BaseLanguageModel):
        return _model(runnable)
    if isinstance(runnable, RunnableRetry):
        raise ConfigError(
            "runnable", "one with .with_retry()", "a runnable that does not retry: the policy does; leave it out"
        )
    _refuse_late_model(runnable)
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
    if isinstance(runnable, RunnableConfigurableAlternatives):
        others = {name: _alternative(other) for name, other in runnable.alternatives.items()}
        return {"default": quiet(runnable.default), "alternatives": others}
    if isinstance(runnable, DynamicRunnable):
        return {"default": quiet(runnable.default)}
    return {}


def _alternative(other: Any) -> Any:
    """One that is there, or is made when it is chosen."""
    return quiet(other) if hasattr(other, "invoke") else lambda: quiet(other())


def _refuse_late_model(runnable: object) -> None:
    """What `init_chat_model` answers where fields are configurable makes its model anew for each call."""
    config: Any = getattr(runnable, "_default_config", None)
    if config is not None and config.get("max_retries") != 0:
        allowed = "max_retries=0 where fields are configurable: the policy retries"
        raise ConfigError("init_chat_model", f"max_retries={config.get('max_retries')}", allowed)


def _model(model: BaseLanguageModel[Any]) -> BaseLanguageModel[Any]:
    """A copy of the model over clients that do not retry."""
    copy = model.model_copy(update={"max_retries": 0} if "max_retries" in type(model).model_fields else {})
    held = vars(copy)
    for name in _lazy(type(model)):
        held.pop(name, None)
    followed = {name: made for name in (*held, *_lazy(type(model))) if (made := _followed(getattr(copy, name)))}
    retries = getattr(model, "max_retries", 0)
    if retries and not followed:
        raise ConfigError(
            f"{type(model).__name__}.max_retries", retries, "0: the policy retries; make the model with max_retries=0"
        )
    held.update(followed)
    return copy


def _lazy(kind: type) -> list[str]:
    """What a model makes of its settings when it is first used: its clients, and what they are made with."""
    attributes = [pair for base in kind.__mro__ for pair in vars(base).items()]
    return [name for name, value in attributes if "client" in name and isinstance(value, cached_property)]


def _followed(held: object) -> object:
    """A client, or a resource of one, without retries; nothing for anything else."""
    if is_client(held):
        return following(held)
    made = following_resource(held)
    return None if made is held else made
