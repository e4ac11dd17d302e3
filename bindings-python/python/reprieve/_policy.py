"""`Policy`: what is configured, and every way to run a function under it."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from . import _aio, _driver, _native, _stream
from ._aio import Answered
from ._attempts import Attempts
from ._functions import (
    check_callable,
    is_async_generator_function,
    is_coroutine_function,
    is_generator_function,
    refuse_generators,
)
from ._guards import Guards
from ._handle import Handle
from ._hooks import classified
from ._options import Options
from ._reading import well_formed
from ._result import Result
from ._session import Session
from ._stream import AsyncStream, Stream
from ._trace import trace_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._native import Action
    from .types import CallOptions, PolicyFields, PresetName

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Bound:
    """A policy with the options of its calls. Made by `Policy.bind`; shared by threads and tasks."""

    __slots__ = ("__weakref__", "_native", "_options", "_policy")

    def __init__(self, policy: Policy, options: Options) -> None:
        self._policy = policy
        self._native: _native.Policy = policy._native
        self._options = options

    @property
    def policy(self) -> Policy:
        """The policy itself."""
        return self._policy

    @property
    def guards(self) -> Guards:
        """The guards that calls ask: the bound ones, or the policy's own."""
        return self._options.guards or self._policy._own_guards

    def bind(self, **options: Unpack[CallOptions]) -> Bound:
        """The same policy with more options. `None` takes one back.

        - `scene`, `prompt_version`: written into the records.
        - `trace_id` (32 hex digits), `idempotency_key`, `seed` (u64): drawn where they are not given.
        - `classify(error)`: the failure's kind by name, a `Failure`, or `None` for the built-in answer.
        - `retry_if(error, failure)`: whether it is tried again; cannot revive a cancellation or a deadline.
        - `backoff(failure, n)`: seconds to wait after the nth attempt on a target; capped, not jittered.
        - `targets`: the function for a target of the policy, by its id; the same arguments go to each.
        - `guards`, `run`: shared state. `cancel`: an event that ends waits, and attempts that are coroutines.
        - `check(value)`: looks at an answer, and raises, or answers `False`, a kind or a `Failure`, where it is none.
          Anything else is fine. What it raises is classified; what says nothing of itself is `invalid_output`.
        - `prepare(request, target)`: adapts the keyword arguments to the target that an attempt is aimed at.
        - `repair`: functions by kind of failure, `repair[kind](request, failure)`, that mend the keyword arguments for
          the rest of the call. Each kind buys one attempt, at once and beside `max_attempts`. `failure.error` is what
          the attempt raised, `failure.value` what `check` has refused.
          Both get a copy to change, or answer another request. In coroutines' calls all three may be coroutines.
        - `sink`: a function or an open file that gets each record as a line of JSON; `on_event` gets event dicts.
        - `on_give_up`: `"original"` (the default) re-raises; `"wrapped"` raises `RetryExhausted` from it.
        - `unmask`: sets of data that records show as they are: ids, cards, phones, serials, keys, tokens, emails.

        Raises `ConfigError` for an unknown option or a bad value.

        >>> from reprieve import Policy
        >>> lines = []
        >>> Policy().bind(scene="greeting", sink=lines.append).call(str.upper, "hi")
        'HI'
        >>> len(lines)
        2
        """
        return Bound(self._policy, self._options.over(self._native, options))

    def __call__(self, function: F) -> F:
        """Decorates a function, a coroutine function or a generator function of either kind, which keeps its
        signature. A generator function then answers a `Stream`, as `stream` does."""
        if isinstance(function, (classmethod, staticmethod)):
            method = cast("Any", function)
            return cast("F", type(method)(self(method.__func__)))
        check_callable(function)
        if is_generator_function(function) or is_async_generator_function(function):
            return cast("F", _stream.wrap(self, function))
        refuse_generators(*(self._options.targets or {}).values())
        if is_coroutine_function(function):
            wrapped = _aio.wrap(self, function)
            return cast("F", functools.update_wrapper(wrapped, function))
        plain = self._options.plain and not self._native.guarded
        retrying = _native.Retrying(function, self, _driver.run, plain)
        return cast("F", functools.update_wrapper(cast("Any", retrying), function))

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function; all arguments are its own. A coroutine function is answered with a coroutine.

        Giving up re-raises the function's own exception, with a trace attached (`trace_of`) and a note.

        >>> from reprieve import Policy
        >>> Policy.preset("single").call(divmod, 7, 2)
        (3, 1)
        """
        return self(function)(*args, **kwargs)

    @overload
    def execute(  # type: ignore[overload-overlap]  # a coroutine function is a function, and is looked for first
        self, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, Result[T]]: ...
    @overload
    def execute(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Result[T]: ...
    def execute(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function and answers a `Result`; raises only what is no `Exception`. A coroutine function is
        answered with a coroutine of a `Result`.

        >>> from reprieve import Policy
        >>> result = Policy().execute(int, "no number")
        >>> result.ok, result.stop_reason, result.attempts
        (False, 'not_retryable', 1)
        """
        refuse_generators(function, *(self._options.targets or {}).values())
        session = Session(self, recorded=True)
        if is_coroutine_function(function):
            return _execute_async(session, function, args, kwargs)
        end: Action | Answered | None = None
        try:
            end = _driver.drive(session, function, args, kwargs)
            if isinstance(end, Answered):
                return _execute_async(session, function, args, kwargs, end)
            return session.result(end)
        finally:
            if not isinstance(end, Answered):
                session.close()

    @overload
    def start(
        self, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Handle[T]: ...
    @overload
    def start(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]: ...
    def start(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Starts the call and answers a handle: `wake()`, `cancel()`, `snapshot()`, `state`. A plain function runs on
        a thread of its own, `handle.result()` waits for it; a coroutine function runs as a task (asyncio) or when the
        handle is awaited (trio).

        >>> from reprieve import Policy
        >>> Policy().start(pow, 2, 10).result()
        1024
        """
        refuse_generators(function, *(self._options.targets or {}).values())
        return Handle.started(self, function, args, kwargs)

    @overload
    def stream(
        self, function: Callable[P, Coroutine[Any, Any, AsyncIterable[T]]], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[T]: ...
    @overload
    def stream(
        self, function: Callable[P, AsyncIterable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[T]: ...
    @overload
    def stream(
        self,
        function: Callable[P, AbstractAsyncContextManager[AsyncIterable[T], bool | None]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AsyncStream[T]: ...
    @overload
    def stream(self, function: Callable[P, Iterable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Stream[T]: ...
    @overload
    def stream(
        self,
        function: Callable[P, AbstractContextManager[Iterable[T], bool | None]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Stream[T]: ...
    def stream(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The items of what the function answers, retried as the policy's `stream` says: a `Stream` for `for`, an
        `AsyncStream` for `async for`. Each is consumed once, and nothing runs before the first item is asked for.

        The function may be a generator function of either kind, or answer an iterator, an iterable, a client's stream
        object or a context manager of one, or a coroutine of those. Start frames, role-only deltas and pings are held
        back until the first content, and delivered right before it; what fails until then is retried unseen. After it
        the policy's mode decides: `before_first_item` raises, `restart` sends a `Discard` and begins anew, `resume`
        calls the function again, which finds `current_attempt().delivered`; `buffered` delivers nothing before the
        answer is whole. Keeps every delivered item until the stream is over.

        >>> from reprieve import Policy
        >>> [*Policy().stream(iter, "abc")]
        ['a', 'b', 'c']
        """
        check_callable(function)
        return _stream.stream(self, function, args, kwargs)

    def attempts(self, **request: Any) -> Attempts:
        """Attempts for a loop, where a function is in the way: `for` or `async for`, and `with`. What is given here is
        `attempt.request`, as `prepare` and `repair` change it.

        >>> from reprieve import Policy
        >>> for attempt in Policy().attempts():
        ...     with attempt:
        ...         value = attempt.number
        >>> value
        1
        """
        return Attempts(self, request)

    def is_retriable(self, error: BaseException) -> bool:
        """Whether this policy would try again after such an error, attempts and time permitting: for what asks before
        it retries, such as LangGraph's `RetryPolicy(retry_on=policy.is_retriable)`. What a call has retried already is
        not, unless `nested` is `independent`: layers add up, and never multiply."""
        if not isinstance(error, Exception) or (self._native.nested != "independent" and trace_of(error)):
            return False
        failure = classified(error, self)
        return self._native.retries(failure.kind) and not failure.retry_forbidden

    def __reduce__(self) -> tuple[Any, ...]:
        """Crosses processes where its options do; guards start fresh there."""
        return Bound, (self._policy, self._options)

    def __repr__(self) -> str:
        return f"<Bound {self._policy!r}>"


class Policy(Bound):
    """Validated, immutable configuration: how often, how long and after what a call is tried again.

    Fields are those of the JSON form: `reprieve.types.PolicyFields` has them all, with their defaults. A duration is a
    number of seconds, a `timedelta`, or text with a unit (`"300ms"`). An empty policy makes 3 attempts within 10
    minutes, waits 250 to 500 ms and then twice that, honours a retry-after of up to 60 s, and retries every retriable
    kind.

    Raises `ConfigError`, a `ValueError` that names the field, the value and what is allowed.

    >>> @Policy(max_attempts=5, total_timeout=30)
    ... def greet(name: str) -> str:
    ...     return f"hello {name}"
    >>> greet("you")
    'hello you'
    """

    __slots__ = ("_own_guards",)

    def __init__(self, **fields: Unpack[PolicyFields]) -> None:
        self._settle(_native.Policy(fields))

    def _settle(self, native: _native.Policy) -> None:
        self._own_guards = Guards()
        self._native = native
        super().__init__(self, Options())

    @classmethod
    def _of(cls, native: _native.Policy) -> Self:
        policy = cls.__new__(cls)
        policy._settle(native)
        return policy

    @classmethod
    def preset(cls, name: PresetName | str) -> Self:
        """A ready-made policy: `interactive`, `batch`, `reasoning`, `router`, `guard`, `tool`, `llm`, `chat_model`,
        `aws_standard` or `single`."""
        return cls._of(_native.Policy.preset(well_formed(name)))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From the JSON form, in which every duration has a unit."""
        return cls._of(_native.Policy.from_json(well_formed(text)))

    @classmethod
    def for_skill(cls, id: str, manifests: Mapping[str, Any] | list[Mapping[str, Any]]) -> Self:
        """A chain from skill manifests: the skill, and the one that its `fallback_skill_id` names; no further.

        >>> manifests = {"search": {"fallback_skill_id": "lite", "timeout_per_call": 10}, "lite": {}}
        >>> Policy.for_skill("search", manifests).targets
        ['search', 'lite']
        """
        return cls._of(_native.Policy.for_skill(well_formed(id), manifests))

    def to_json(self) -> str:
        """The JSON form, which every language reads."""
        return self._native.to_json()

    def replace(self, **fields: Unpack[PolicyFields]) -> Self:
        """This policy with other values for some fields. What a nested field leaves out stays as it is here.

        >>> Policy.preset("llm").replace(max_attempts=2) == Policy.preset("llm")
        False
        """
        return self._of(_native.Policy(fields, self._native))

    @property
    def targets(self) -> list[str]:
        """The ids of the targets, in order."""
        return self._native.targets

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self._native == other._native

    def __hash__(self) -> int:
        return hash(self._native)

    def __reduce__(self) -> tuple[Any, ...]:
        """Crosses processes as its JSON; guards start fresh there."""
        return type(self).from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return f"<Policy {self._native.summary}>"


async def _execute_async(
    session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], answered: Answered | None = None
) -> Result[Any]:
    try:
        return session.result(await _aio.drive(session, function, args, kwargs, answered=answered))
    finally:
        session.close()
