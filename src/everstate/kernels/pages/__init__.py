"""State as pages of some hundred rows each, whoever holds them; knows no operation.

`page_store.py` is the store of one row per key, `grouped_store.py` that of many, and `slices.py` keeps stores apart by
time; `addressing.py` says on which page a row lies, `loaded_pages.py` holds the pages that a micro-batch has read,
`page_bytes.py` writes them. `due_index.py` and `due_wheel.py` find the keys that are due.
"""
