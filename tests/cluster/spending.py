"""A module of the user's that no machine of the cluster has."""


def level(row):
    return {"customer": row["customer"], "amount": row["amount"], "large": row["amount"] >= 50}
