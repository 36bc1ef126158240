"""What a reader has to know before the verdict: the warnings of page one, each a sentence with its numbers."""

from __future__ import annotations

from kit import numbers
from kit.analysis.parts import Parts

OPENING = "key_length_varies: "  # how a log says that its keys are not what they should be
ALL_PRICED = 0.99


def warnings(made: Parts) -> list[str]:
    """Sentences for page one: keys that are not hashes of exact bytes, and traffic without a price; often none."""
    keys = [text.removeprefix(OPENING) for text in made.log.facts.warnings if text.startswith(OPENING)]
    found = [
        f"The prefix keys of this log are doubtful: {text}. Hits may be counted that no cache had." for text in keys
    ]
    return found + _unpriced(made)


def _unpriced(made: Parts) -> list[str]:
    """Which share of the traffic has no money figure, and what is not in the price list."""
    rates = made.scene.rates
    if rates is None or rates.priced_token_share is None or rates.priced_token_share >= ALL_PRICED:
        return []
    lacking = sorted({f"{rate.provider or 'no provider'} / {rate.model or 'no model'}" for rate in rates.rows
                      if not rate.found})  # fmt: skip
    named = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
    none = not rates.priced_token_share
    lead = "No cost can be given" if none else f"{numbers.percent(1 - rates.priced_token_share)} of input has no cost"
    return [f"{lead}: no price is known for {named}. Name a model of python -m kit prices, or give price_overlay."]
