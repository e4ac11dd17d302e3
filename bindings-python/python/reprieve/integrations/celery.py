"""Celery: a task whose call stops, and knows when it may work, runs again then.

>>> import celery
>>> from reprieve.integrations.celery import RetryTask
>>> app = celery.Celery()
>>> @app.task(base=RetryTask, max_retries=5)
... def answer(question: str) -> str:
...     return "42"
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import celery  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
from celery.exceptions import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    TaskPredicate,
)

from ._stops import stop_of

__all__ = ["RetryTask"]


_Task: Any = celery.Task  # Celery has no types


class RetryTask(_Task):  # type: ignore[misc]
    """A base for tasks: `@app.task(base=RetryTask)`, or `Celery(task_cls="reprieve.integrations.celery:RetryTask")`
    for all of an app's.

    When a call under a policy gives up, and its stop says when it may work (`resume_in`: a retry-after, the end of a
    cooldown, the next probe of a breaker), the task is put back with `self.retry(countdown=...)`, and the worker is
    free meanwhile. Any other error is the task's own, and so is this one once `max_retries` of the task are used up.
    The attempts of the policy are those of one execution.

    What the task itself asks for holds: its own `self.retry(...)`, `Ignore` and `Reject` pass through. `autoretry_for`
    has what is left, errors that do not say when.

    Each execution is a call of its own, with a key of its own. A server that knows idempotency keys recognises the
    second one if both send the task's id: `policy.bind(idempotency_key=self.request.id)`.

    A countdown can be long: a quota may come back tomorrow. Redis and SQS deliver a task again that waits for longer
    than their `visibility_timeout`, so that it runs twice: make that longer, or set the policy's `retry_on` and
    `fallback_on` so that such calls have another target.
    """

    abstract = True
    #: How much is added to the countdown at random, as a share of it: tasks that were throttled together do not come
    #: back together.
    spread = 0.1

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Where Celery's `autoretry_for` has its place, too: around `run`, which calls of every kind go through."""
        task: Any = _Task.__new__(cls)
        task.run = _coming_back(task, task.run)
        return task


def _coming_back(task: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """The body of a task, after which the task is put back where a stop says when it may work."""

    @functools.wraps(run)
    def body(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except TaskPredicate:
            raise
        except Exception as error:
            stop = stop_of(error)
            if stop is None or stop.resume_in is None:
                raise
            raise task.retry(exc=error, countdown=stop.resume_in * (1 + random.uniform(0, task.spread))) from error

    return body
