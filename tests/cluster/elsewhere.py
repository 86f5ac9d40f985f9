"""The command line as it runs on a machine of another name: what leases go by."""

import os
import socket

NAME = os.environ["EVERSTATE_TEST_HOST"]
socket.gethostname = lambda: NAME

from everstate.cli.main import main  # noqa: E402 - only now

if __name__ == "__main__":
    main()
