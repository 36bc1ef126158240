"""Money: what a replay costs, what the log really cost, and which retention would have been cheaper."""

from __future__ import annotations

from kit.billing.accept import Accept, accept
from kit.billing.bill import AVOIDABLE, CAUSES, TIER_MODES, Bill, BillingError, bill
from kit.billing.retention import ttl_advice

__all__ = ["AVOIDABLE", "CAUSES", "TIER_MODES", "Accept", "Bill", "BillingError", "accept", "bill", "ttl_advice"]
