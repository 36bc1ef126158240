"""Money: what a replay costs, what the log really cost, and which retention would have been cheaper."""

from __future__ import annotations

from kit.billing.accept import Accept, accept
from kit.billing.bill import AVOIDABLE, CAUSES, TIER_MODES, Bill, BillingError, bill
from kit.billing.books import safe_cell, write_books, write_csv
from kit.billing.effective import effective_price
from kit.billing.engine import prefill_work
from kit.billing.invoices import check_invoices
from kit.billing.ledger import ledger
from kit.billing.retention import ttl_advice

__all__ = [
    "AVOIDABLE", "CAUSES", "TIER_MODES", "Accept", "Bill", "BillingError", "accept", "bill", "check_invoices",
    "effective_price", "ledger", "prefill_work", "safe_cell", "ttl_advice", "write_books", "write_csv",
]  # fmt: skip
