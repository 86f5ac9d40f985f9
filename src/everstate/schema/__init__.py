"""What a record looks like: types, schemas, keys, and the strict codec for one value at a time. Knows no topology.

`types.py` lists what a column can be, `schema.py` is a record's columns, `annotations.py` reads them from what users
write. `record_values.py`, `scalars.py`, `column_values.py` and `text_forms.py` decode and encode; `keys.py` and
`partitioner.py` do it as Kafka's clients do.
"""
