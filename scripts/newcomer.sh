#!/usr/bin/env bash
# The first hour of a newcomer: a clone, an environment, a project of their own, an edit, and the way back.
#
#     scripts/newcomer.sh FOLDER [REPOSITORY]
#
# Everything is made in FOLDER, which must be empty; the commands are those of the README and of the project that
# `everstate init` writes. Fails at the first one that does not do what it says.
set -euo pipefail

folder=$(realpath "$1")
repository=${2:-$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")}
printed="$folder/printed.txt"

# What would lead somewhere else than to the clone and its environment.
unset PYTHONPATH VIRTUAL_ENV EVERSTATE_LOG EVERSTATE_STATE_DIR MAKEFLAGS MAKELEVEL

run() { # a command, which must end well; what it prints is kept for `says`
    echo "\$ $*"
    if ! "$@" >"$printed" 2>&1; then
        cat "$printed"
        echo "failed: $*"
        exit 1
    fi
    sed 's/^/  /' "$printed"
}

says() { # what the last command must have printed
    if ! grep -qF -- "$1" "$printed"; then
        echo "this is missing above: $1"
        exit 1
    fi
}

cd "$folder"
run git clone --quiet "$repository" everstate
run make --no-print-directory --directory everstate setup
# shellcheck disable=SC1091 # made by the line before
source everstate/.venv/bin/activate

run everstate init shop
says "Next: cd shop"
cd shop
run make test
says "2 passed"
run make records
says "4 records written"
run everstate run --once
run everstate consume customer-totals --latest --json
says '"key": "ada", "value": {"total": 1200.0, "orders": 2}'
says '"key": "bob", "value": {"total": 80.0, "orders": 1}'

# The edit: orders that were declared void count after all.
sed -i.bak 's/return order\["status"\] != "void"/return True/' src/shop/rules.py
run everstate plan
says '- '
says 'return True'
run everstate plan --key bob
says 'total   80.0 -> 170.0'
says 'orders o4 counts now'
run everstate run --once
run everstate consume customer-totals --latest --json
says '"key": "bob", "value": {"total": 170.0, "orders": 2}'
run everstate status
says 'customer-totals'
run everstate export customer-totals totals.csv --latest
run cat totals.csv
says "bob,170.0,2"

run everstate rollback orders customer-totals --dry-run
says 'return order["status"] != "void"'
run everstate rollback orders customer-totals
says 'generation 1 is active again'
run everstate consume customer-totals --latest --json
says '"key": "bob", "value": {"total": 80.0, "orders": 1}'
mv src/shop/rules.py.bak src/shop/rules.py
run everstate plan
says 'nothing changes'
echo "A newcomer gets through."
