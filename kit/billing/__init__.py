"""Money: what a replay costs, what the log really cost, and which retention would have been cheaper."""

from __future__ import annotations

from kit.billing.accept import Accept, accept
from kit.billing.bill import AVOIDABLE, CAUSES, TIER_MODES, Bill, BillingError, bill

__all__ = ["AVOIDABLE", "CAUSES", "TIER_MODES", "Accept", "Bill", "BillingError", "accept", "bill"]
