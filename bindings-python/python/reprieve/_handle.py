"""A call that runs beside its caller: look at it, wake it, cancel it, write it down."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from . import _aio, _driver, _on_asyncio
from ._errors import MisuseError
from ._functions import is_coroutine_function
from ._session import Session

if TYPE_CHECKING:
    from ._options import Caller
    from ._result import Result


T = TypeVar("T")


class Handle(Generic[T]):
    """A call that was started. Its methods may be called from any thread."""

    def __init__(self, session: Session) -> None:
        session.handled = True
        self._session = session
        self._done = threading.Event()
        self._result: Result[T] | None = None
        self._crash: BaseException | None = None
        self._task: Any = None
        self._drive: Callable[[], Any] | None = None

    @staticmethod
    def started(owner: Caller, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Handle[Any]:
        """Starts the call: on a thread, as a task, or when awaited."""
        handle: Handle[Any] = Handle(Session(owner, recorded=True))
        session = handle._session
        if is_coroutine_function(function):
            handle._drive = lambda: _aio.drive(session, function, args, kwargs)
            if _on_asyncio.in_task():
                import asyncio

                handle._task = asyncio.get_running_loop().create_task(handle._run_async())
        else:
            context = contextvars.copy_context()
            handle._drive = lambda: _driver.drive(session, function, args, kwargs)
            threading.Thread(target=context.run, args=(handle._run,), name="reprieve-call", daemon=True).start()
        return handle

    @property
    def state(self) -> str:
        """`ready`, `in_flight`, `waiting` or `ended`."""
        return self._session.call.state

    def wake(self) -> None:
        """Ends the wait under way. The machine checks: no wait gets shorter than it must be."""
        self._session.wake()

    def cancel(self, reason: str = "its handle was cancelled") -> None:
        """Cancels the call: ends a wait at once, and an attempt that is a coroutine."""
        self._session.cancel(reason)

    def snapshot(self) -> str:
        """The call as JSON, to go on elsewhere in any language. A copy: cancel this one if the other goes on."""
        return self._session.snapshot()

    def result(self, timeout: float | None = None) -> T:
        """Waits for a plain function's call: its value, or what it raises. `TimeoutError` when that takes longer than
        `timeout` seconds; the call goes on."""
        if self._task is not None and _on_asyncio.running_loop() is self._task.get_loop():
            raise MisuseError("result() would block the event loop that the call runs on: await the handle")
        if not self._done.wait(timeout):
            raise TimeoutError(f"the call has not ended within {timeout} s; it goes on")
        try:
            return self._unpack()
        finally:
            del self  # an error's traceback holds this frame, and the handle holds the error

    def __await__(self) -> Generator[Any, None, T]:
        return self._awaited().__await__()

    async def _awaited(self) -> T:
        if self._task is not None:
            await self._task
        elif not self._done.is_set():
            await self._run_async()
        try:
            return self._unpack()
        finally:
            del self

    def _unpack(self) -> T:
        try:
            if self._result is None:
                raise self._crash or RuntimeError("the call has no end")
            if self._result.error is not None:
                raise self._result.error
            return cast("T", self._result.value)
        finally:
            del self

    def _run(self) -> None:
        assert self._drive is not None
        try:
            end = self._drive()
            if isinstance(end, _aio.Answered):
                end.coroutine.close()
                self._session.stopped_outside()
                raise TypeError(
                    "a plain function was started and answered a coroutine: start an `async def` that awaits it"
                )
            self._result = self._session.result(end)
        except BaseException as crash:
            self._crash = crash
        finally:
            self._finish()
            del self  # the error's frames lead back to this one

    async def _run_async(self) -> None:
        assert self._drive is not None
        try:
            self._result = self._session.result(await self._drive())
        except BaseException as crash:
            self._crash = crash
            raise
        finally:
            self._finish()
            del self

    def _finish(self) -> None:
        self._session.close()
        self._drive = None
        self._done.set()
