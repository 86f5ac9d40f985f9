"""Random Python programs, edits of them, and what both calculate: the oracle of the fingerprints.

Nothing here knows how a fingerprint is made. A program is written, loaded and run on a few rows; so is the program
after an edit. If the results differ, the fingerprints must.
"""
