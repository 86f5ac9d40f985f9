"""`python -m everstate` is the command `everstate`, for where that is not on the path."""

from __future__ import annotations

from everstate.cli.main import main

if __name__ == "__main__":
    main()
