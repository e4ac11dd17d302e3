"""What tokens cost: the user's own table, by the name of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from .._errors import ConfigError
from .._usage import Billed

NUMBERS = ("input", "output", "cached_input", "cache_write")


@dataclass(frozen=True)
class Rate:
    """Prices for a million tokens."""

    input: float
    output: float
    cached_input: float
    cache_write: float
    currency: str

    def cost(self, tokens: Billed) -> float:
        """Of one answer."""
        return (
            tokens.input * self.input
            + tokens.output * self.output
            + tokens.cached * self.cached_input
            + tokens.written * self.cache_write
        ) / 1e6


class Prices:
    """The table. A model that is not in it has no price; nothing is guessed from similar names."""

    def __init__(self, rates: Mapping[str, Rate]) -> None:
        self._rates = rates

    @staticmethod
    def of(table: object) -> Prices:
        """Checked: raises `ConfigError` naming the model and the field."""
        if table is None:
            return Prices({})
        if not isinstance(table, Mapping):
            raise ConfigError("prices", repr(table), 'a mapping: {"gpt-5": {"input": 1.25, "output": 10.0}}')
        rows = cast("Mapping[object, object]", table)
        return Prices({str(model): _rate(f"prices.{model}", row) for model, row in rows.items()})

    def of_model(self, *names: object) -> Rate | None:
        """The rate of the first of these names that has one."""
        return next((self._rates[name] for name in names if isinstance(name, str) and name in self._rates), None)


def _rate(field: str, row: object) -> Rate:
    if not isinstance(row, Mapping):
        raise ConfigError(field, repr(row), '{"input": ..., "output": ...}, for a million tokens')
    given = cast("Mapping[str, Any]", row)
    for name, value in given.items():
        if name not in (*NUMBERS, "currency"):
            raise ConfigError(
                f"{field}.{name}", repr(value), f"no such field; there are {', '.join(NUMBERS)}, currency"
            )
    numbers = {name: _number(f"{field}.{name}", given[name]) for name in NUMBERS if given.get(name) is not None}
    for name in ("input", "output"):
        if name not in numbers:
            raise ConfigError(f"{field}.{name}", "nothing", "what a million tokens cost")
    currency = given.get("currency", "USD")
    if not isinstance(currency, str) or not currency:
        raise ConfigError(f"{field}.currency", repr(currency), 'a name such as "USD"')
    read = numbers["input"]
    return Rate(read, numbers["output"], numbers.get("cached_input", read), numbers.get("cache_write", read), currency)


def _number(field: str, value: object) -> float:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    if not fine:
        raise ConfigError(field, repr(value), "a number from 0 up, for a million tokens")
    return float(cast("float", value))
