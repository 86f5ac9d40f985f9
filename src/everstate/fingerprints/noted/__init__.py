"""What the user's own text says of each step: definitions that it reaches, where they stand, and what they use.

Kept with each generation, so that a plan can show old text beside new. No part of a fingerprint, and made only where it
is needed: when a generation is made, and when a plan has something to explain.

`walk.py` begins; `notes.py` is what comes out. `places.py` finds where a name was written, `calls.py` the call that
made a step, `definitions.py` describes a function or class, `contents.py` writes values down.
"""

from everstate.fingerprints.noted.notes import Notes
from everstate.fingerprints.noted.walk import note_unit

__all__ = ["Notes", "note_unit"]
