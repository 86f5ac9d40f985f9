"""How the bytes of keys and values are written beyond plain JSON, text and bytes: Avro and Protobuf, by a registry.

`descriptions.py` has what users write, `registry.py` asks the schema registry, `framing.py` knows what stands before a
value, `avro.py` and `protobuf.py` take one record at a time. `values.py` is the door: one function to read a value in
any format, one to write it. What is done to whole batches at once is in `kernels/records/`.
"""
