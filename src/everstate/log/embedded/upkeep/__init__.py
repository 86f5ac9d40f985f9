"""What keeps an embedded log small: merging, compaction, retention and garbage, and who does it when (`tending.py`)."""
