"""What calls cost, by the list prices of genai-prices (https://github.com/pydantic/genai-prices)."""

import asyncio
from collections.abc import Callable

from agents.configuration.values import Prices
from agents.simulator.behaviour import MODEL as SIMULATED
from streams.core.values import Usage

Price = Callable[[Usage], float]

MODELS = 1_000
"""Models whose price is remembered."""

A_MILLION = 1_000_000

PROBE = 1_000
"""Tokens of the calls whose price gives the unit prices: few enough for the lowest tier."""


class PriceList:
    """Prices of the models of one endpoint, looked up once a model.

    The first look-up loads the whole price list, two seconds of CPU, so it runs in a thread;
    from then on a price is a few multiplications.
    """

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._prices: dict[str, Price | None] = {}
        self._lookup = asyncio.Lock()

    async def usd(self, model: str, usage: Usage, *, own: Prices | None = None) -> float:
        """US dollars of a call; 0.0 where nobody knows the model's price.

        Args:
            model: What the endpoint calls it.
            usage: What the call cost.
            own: What is paid where that is not the list price.
        """
        price = await self.price(model, own=own)
        return 0.0 if price is None else price(usage)

    async def price(self, model: str, *, own: Prices | None = None) -> Price | None:
        """How to price calls of a model, as of :meth:`usd`; None where nobody knows its price."""
        if own is not None:
            return own_price(own)
        if model not in self._prices:
            async with self._lookup:
                if model not in self._prices:
                    price = await asyncio.to_thread(find_price, model, self._base_url)
                    if len(self._prices) >= MODELS:  # an endpoint with a new name in each reply
                        self._prices.clear()
                    self._prices[model] = price
                    return price
        return self._prices[model]


def own_price(prices: Prices) -> Price:
    """How to price calls by configured prices; cached tokens cost as others do where nothing else is said."""
    cached = prices.tokens_in if prices.tokens_cached is None else prices.tokens_cached

    def price(usage: Usage) -> float:
        fresh = usage.tokens_in - usage.tokens_cached
        return (
            fresh * prices.tokens_in + usage.tokens_cached * cached + usage.tokens_out * prices.tokens_out
        ) / A_MILLION

    return price


def find_price(model: str, base_url: str) -> Price | None:
    """How to price calls of *model*: by the endpoint's provider, else by the model's name alone, else None.

    The simulated endpoint's models cost nothing.
    """
    if model.partition("-")[0] == SIMULATED:
        return lambda _: 0.0
    # Imported here because it takes more than a second, which runs without prices need not pay.
    from genai_prices import Usage as PricedUsage  # noqa: PLC0415
    from genai_prices import calc_price  # noqa: PLC0415
    from genai_prices.types import TieredPrices  # noqa: PLC0415

    def probe(*, tokens_in: int = 0, cached: int = 0, tokens_out: int = 0) -> float:
        found = model_price.calc_price(
            PricedUsage(input_tokens=tokens_in, cache_read_tokens=cached, output_tokens=tokens_out)
        )
        return float(found["total_price"])

    nothing = PricedUsage(input_tokens=0, output_tokens=0)
    try:
        model_price = calc_price(nothing, model, provider_api_url=base_url).model_price
    except LookupError:
        try:
            model_price = calc_price(nothing, model).model_price
        except LookupError:
            return None
    if any(isinstance(price, TieredPrices) for price in vars(model_price).values()):
        return lambda usage: probe(
            tokens_in=usage.tokens_in, cached=usage.tokens_cached, tokens_out=usage.tokens_out
        )
    each_in = probe(tokens_in=PROBE) / PROBE
    each_cached = probe(tokens_in=PROBE, cached=PROBE) / PROBE
    each_out = probe(tokens_out=PROBE) / PROBE
    return lambda usage: (
        (usage.tokens_in - usage.tokens_cached) * each_in
        + usage.tokens_cached * each_cached
        + usage.tokens_out * each_out
    )
