"""What a generation keeps beside its topics: its folder, its sample, the ids of its topics, the archive of its sources.

`folder.py` says where everything lies; `past.py` how much of its sources a generation can read, `archiving.py` keeps
what they would lose; `samples.py` is the second net under the fingerprints.
"""
