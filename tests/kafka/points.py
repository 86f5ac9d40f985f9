"""Where a batch of two publishers can be killed, and how often it comes by."""

SHARES = {
    "log.commit.inside_transaction": 1,
    "log.commit.after_transaction": 1,
    "kafka.shares.before": 1,
    "kafka.share.inside_transaction": 2,
    "kafka.share.after_transaction": 2,
    "kafka.shares.after": 1,
}
