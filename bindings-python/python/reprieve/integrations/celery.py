"""Celery: a task whose call stops, and knows when it may work, runs again then.

>>> import celery
>>> from reprieve.integrations.celery import RetryTask
>>> app = celery.Celery()
>>> @app.task(base=RetryTask, max_retries=5)
... def answer(question: str) -> str:
...     return "42"
"""

from __future__ import annotations

import random
from typing import Any

import celery  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

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

    Each execution is a call of its own, with a key of its own. A server that knows idempotency keys recognises the
    second one if both send the task's id: `policy.bind(idempotency_key=self.request.id)`.
    """

    abstract = True
    #: How much is added to the countdown at random, as a share of it: tasks that were throttled together do not come
    #: back together.
    spread = 0.1

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the task."""
        try:
            return _Task.__call__(self, *args, **kwargs)
        except Exception as error:
            stop = stop_of(error)
            if stop is None or stop.resume_in is None:
                raise
            raise self.retry(exc=error, countdown=stop.resume_in * (1 + random.uniform(0, self.spread))) from error
