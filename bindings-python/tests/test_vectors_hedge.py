"""Every `call` vector with a hedge through the drivers of coroutines and of their streams, on asyncio. One thread:
functions wait for the word of the script, also when they are cancelled, so that every outcome comes when its step says.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from scripted import classify, raised_for, value_of
from vectors import Case, Differs, Hands, Played, Tally, World, cases, hands, shown, verb

import reprieve
from reprieve import Policy
from reprieve._session import Session

#: Turns of the loop in which a driver that has something to do does it: it looks at a virtual clock every 10 ms.
LOOKS = 4


class Lane:
    """One call, and what its driver was told."""

    name = "beside each other, through asyncio"

    def __init__(self, world: World, policy: Policy, seed: int, ids: dict[str, Any], loop: Any) -> None:
        self._clock, self._loop = world.clock, loop
        self._bound = policy.bind(seed=seed, guards=world.guards, run=world.run, classify=classify, **ids)
        self._handle: reprieve.Handle[Any] | None = None
        self.session: Session | None = None
        self.told: deque[tuple[int, Any]] = deque()
        self._words: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._over: set[int] = set()
        self._attempts: dict[int, Any] = {}
        self._won: Any = None
        self._begun = False
        self._fault: Exception | None = None

    # --- the script's side ---

    def begin(self, at: int) -> Any:
        if not self._begun:
            self._begun = True
            self._until(self._start)
        return self._next(at)

    def hedge(self, at: int) -> Any:
        self._until()
        if self.session is None or self.session.call.state == "ended":
            return "ignored"
        return self._next(at) if self.told else "pending"

    def outcome(self, at: int, do: dict[str, Any]) -> Any:
        number = do.get("attempt", max(self._attempts))
        late = self.session is not None and number not in self.session._in_flight
        if not self._words[number].done():
            self._words[number].set_result(do)
            self._until()
        if late:
            if number not in self._over:
                raise Differs(f"attempt {number} was superseded, and has not unwound")
            return "ignored"
        self._won = do
        return self._next(at)

    def cancel(self, at: int) -> Any:
        assert self._handle is not None
        self._handle.cancel()
        self._until()
        return "pending"

    def first_item(self, at: int, attempt: int | None) -> Any:
        raise AssertionError("streams are not driven here")

    def snapshot(self, at: int, wall: int) -> str:
        assert self._handle is not None
        self._clock.set(at, wall)
        return self._handle.snapshot()

    def records(self) -> list[dict[str, Any]]:
        assert self.session is not None
        trace = self.session.trace()
        return trace.receipts + ([trace.ended] if trace.ended else [])

    def close(self) -> None:
        """Lets everything unwind; the value is the winner's, and no attempt goes on."""
        for word in self._words.values():
            if not word.done():
                word.set_result({"failure": {"kind": "cancelled"}})
        if self._handle is None:
            return
        self._handle.cancel()
        result = self._loop.run_until_complete(asyncio.wait_for(self._ended(), 5))
        if self._over != set(self._attempts):
            raise Differs(f"of {set(self._attempts)} only {self._over} have unwound")
        if isinstance(result, reprieve.Result) and result.ok and result.value != value_of(self._won):
            raise Differs(f"the value is not the winner's: {result.value}")

    async def _start(self) -> None:
        self._handle = self._bound.start(self._function)

    async def _ended(self) -> Any:
        assert self._handle is not None
        try:
            return await self._handle
        except Exception as error:
            return error

    def _until(self, first: Any = None) -> None:
        """Lets the driver do what it has to do."""

        async def turns() -> None:
            if first is not None:
                await first()
            for _ in range(LOOKS):
                await asyncio.sleep(0 if self.told else 0.011)
                for _ in range(10):
                    await asyncio.sleep(0)

        self._loop.run_until_complete(turns())
        if self._fault is not None:
            raise self._fault

    def _next(self, at: int) -> Any:
        if not self.told:
            raise Differs("the driver was told nothing")
        moment, action = self.told.popleft()
        if moment != at:
            raise Differs(f"the driver was told {shown(action)} at {moment} ns")
        return shown(action)

    # --- the driver's side ---

    async def _function(self) -> Any:
        with self._attempt() as number:
            return await self._hears(number)

    @contextmanager
    def _attempt(self) -> Iterator[int]:
        attempt = reprieve.current_attempt()
        assert attempt is not None
        number = attempt.number
        self._attempts[number], self._words[number] = attempt, self._loop.create_future()
        try:
            yield number
        finally:
            self._over.add(number)
            if reprieve.current_attempt() not in (attempt, None):
                self._fault = Differs(f"in attempt {number}, current_attempt() says {reprieve.current_attempt()}")

    async def _hears(self, number: int) -> Any:
        cancelled = None
        while True:
            try:
                do = await asyncio.shield(self._words[number])
            except asyncio.CancelledError as error:
                cancelled = error
                continue
            if do is FIRST:
                return FIRST
            if "success" in do:
                return {**value_of(do)}
            if cancelled is not None and do["failure"]["kind"] == "cancelled":
                raise cancelled
            raise raised_for(do)


class StreamLane(Lane):
    """The same through a stream, whose items come when the script says so."""

    name = "beside each other, through asyncio's streams"

    def __init__(self, world: World, policy: Policy, seed: int, ids: dict[str, Any], loop: Any) -> None:
        super().__init__(world, policy, seed, ids, loop)
        self._event = threading.Event()
        self._bound = self._bound.bind(cancel=self._event)
        #: What the consumer has had: the attempt of each item.
        self.items: list[int] = []
        self._consumer: asyncio.Task[None] | None = None

    def first_item(self, at: int, attempt: int | None) -> Any:
        assert self.session is not None
        number, had = attempt or max(self._attempts), len(self.items)
        late = number not in self.session._in_flight
        word, self._words[number] = self._words[number], self._loop.create_future()
        word.set_result(FIRST)
        self._until()
        if self.items[had:] != ([] if late else [number]):
            raise Differs(f"the consumer has had items of attempts {self.items}")
        if going := [other for other, made in self._attempts.items() if other != self.items[-1] and not made.ended]:
            raise Differs(f"attempts {going} go on")
        return "ignored" if late else "pending"

    def cancel(self, at: int) -> Any:
        self._event.set()
        self._until()
        return "pending"

    def close(self) -> None:
        for word in self._words.values():
            if not word.done():
                word.set_result({"failure": {"kind": "cancelled"}})
        if self._consumer is None:
            return
        self._event.set()
        self._loop.run_until_complete(asyncio.wait([self._consumer], timeout=5))
        error = self._consumer.exception()
        if not isinstance(error, Exception | None):
            raise error
        if self._over != set(self._attempts):
            raise Differs(f"of {set(self._attempts)} only {self._over} have unwound")

    async def _start(self) -> None:
        self._consumer = asyncio.get_running_loop().create_task(self._consume())

    async def _consume(self) -> None:
        async for item in self._bound.stream(self._items):
            self.items.append(item)

    async def _items(self) -> AsyncIterator[int]:
        with self._attempt() as number:
            count = 0
            while await self._hears(number) is FIRST:
                count += 1
                yield number
            for _ in range(count, self._words[number].result()["success"].get("delivered", 0)):
                yield number


#: What the script says where the source has its first item, and goes on.
FIRST: dict[str, Any] = {"success": {"first_item": True}}


def unplayable(case: Case, lane: type[Lane]) -> str | None:
    if "hedge" not in (case.get("policy") or {}):
        return "no attempt is joined: played by test_vectors_driver.py"
    if "raw_only" in case:
        return str(case["raw_only"])
    words = [verb(step["do"])[0] for step in case["steps"]]
    if lane is StreamLane and {"snapshot", "restore"} & {*words}:
        return "a stream has no handle to take snapshots with"
    if lane is Lane and "first_item" in words:
        return "a call has no items"
    if any("usage" in step["do"] for step in case["steps"] if isinstance(step["do"], dict)):
        return "a function that raises reports no usage"
    return None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hands]:
    clock = Hands()
    with hands(clock):
        yield clock


@pytest.mark.parametrize("kind", [Lane, StreamLane])
def test_hedge_vectors_through_asyncio(
    kind: type[Lane], clock: Hands, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tally, tell = Tally("call", kind.name), Session._told
    lanes: list[Lane] = []

    def told(session: Session, action: Any) -> Any:
        lane = next(lane for lane in lanes if lane._bound._options is session.options)
        lane.session = session
        lane.told.append((clock.now(), action))
        return tell(session, action)

    monkeypatch.setattr(Session, "_told", told)
    loop = asyncio.new_event_loop()
    unheard: list[Any] = []
    loop.set_exception_handler(lambda _, context: unheard.append(context))

    def play(case: Case) -> None:
        lanes.clear()

        def fresh(world: World, policy: Policy, seed: int, ids: dict[str, Any]) -> Played:
            lanes.append(kind(world, policy, seed, ids, loop))
            return lanes[-1]

        clock.set(0)
        world = World(case, clock, fresh)
        try:
            world.play()
        finally:
            for lane in lanes:
                lane.close()

    try:
        for case in cases("call"):
            tally.run(case, play, unplayable(case, kind))
    finally:
        loop.close()
    line = tally.report()
    assert not unheard
    assert tally.ran > 40
    with capsys.disabled():
        print(f"\n{line}", end="")
