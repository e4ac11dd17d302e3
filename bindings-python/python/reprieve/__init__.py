"""One retry engine for calls that fail: to language models, to tools, to any service.

>>> from reprieve import Policy
>>> @Policy.preset("interactive")
... def ask(question: str) -> str:
...     return "42"
>>> ask("?")
'42'
"""

from ._current import Attempt, current_attempt
from ._errors import (
    AttemptTimeout,
    BadOutput,
    BudgetExhausted,
    CallCancelled,
    CircuitOpen,
    ConfigError,
    CoolingDown,
    DeadlineExceeded,
    Limited,
    MisuseError,
    RetryError,
    RetryExhausted,
    Shed,
    SnapshotError,
    StreamError,
)
from ._faults import faults
from ._guards import Breaker, Guards, Run
from ._handle import Handle
from ._native import Action, Failure
from ._policy import Bound, Policy
from ._raw import Call, classify
from ._result import Result
from ._stream import AsyncStream, Stream
from ._stream_session import Discard
from ._trace import Trace, trace_of
from ._wrap import wrap

__all__ = [
    "Action",
    "AsyncStream",
    "Attempt",
    "AttemptTimeout",
    "BadOutput",
    "Bound",
    "Breaker",
    "BudgetExhausted",
    "Call",
    "CallCancelled",
    "CircuitOpen",
    "ConfigError",
    "CoolingDown",
    "DeadlineExceeded",
    "Discard",
    "Failure",
    "Guards",
    "Handle",
    "Limited",
    "MisuseError",
    "Policy",
    "Result",
    "RetryError",
    "RetryExhausted",
    "Run",
    "Shed",
    "SnapshotError",
    "Stream",
    "StreamError",
    "Trace",
    "classify",
    "current_attempt",
    "faults",
    "trace_of",
    "wrap",
]
