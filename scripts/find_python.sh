#!/bin/sh
# Prints the Python to build the environment with: the one of .venv if it fits, else $PYTHON, else the newest that fits.
fits='import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
for python in .venv/bin/python ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
    # Version switchers have commands for versions that are not active, so only running one tells.
    if "$python" -c "$fits" >/dev/null 2>&1; then
        echo "$python"
        exit 0
    fi
done
echo "Everstate needs Python 3.11, 3.12 or 3.13 with venv (on Debian and Ubuntu: apt-get install python3 python3-venv)," \
    "and none was found: install one, or name it with make PYTHON=/path/to/python." >&2
exit 1
