"""Card limits: a stateful Python function that sees the payments of one card after the other."""

from typing import TypedDict

import everstate as es

LIMIT = 500


class Alert(TypedDict):
    """What goes out when a card passes its limit."""

    amount: int
    spent: int


def spent_so_far(payment: dict, state: es.State) -> Alert:
    """Add the payment to what the card has spent."""
    spent = state.get("spent", 0) + payment["amount"]
    state.set("spent", spent)
    return {"amount": payment["amount"], "spent": spent}


app = es.Service("limits")

payments = app.stream("payments", key="card", schema={"card": str, "amount": int, "shop": str})

payments.apply(spent_so_far, stateful=True).filter(es.col("spent") > LIMIT).to("alerts")

payments.group_by("shop").agg(payments=es.count(), median=es.median("amount"), largest=es.top_k("amount", 3)).to(
    "shops"
)
