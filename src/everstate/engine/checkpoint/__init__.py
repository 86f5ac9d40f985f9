"""What Spark leaves on disk: reading it (`checkpoint.py`), checking it before a start, cloning it for a migration."""
