"""What each operation does to rows and their state: pure functions on frames. Knows no Spark."""
