"""What differs between a generation and what is on its topics: `comparison.py` puts it together.

`topic_view.py` reads a topic and follows it, `difference.py` compares tables, `letters.py` dead letters.
"""
