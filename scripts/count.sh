#!/bin/sh
# Counts what CONTRIBUTING.md limits, and names the worst: `make count`.
cd "$(dirname "$0")/.." && python=$(sh scripts/find_python.sh) || exit 1
modules() { find src/everstate -name '*.py' "$@"; }
found() { grep -rnE --include='*.py' "$1" src/everstate; }
count() { lines=$(sed '/^$/d') && echo "$1: $(printf '%s' "$lines" | grep -c '')" && printf '%s\n' "$lines" | head -n "${2:-99}" | sed '/^$/d; s/^/    /'; }
nodes=$(sed -nE '/StrEnum/!s/^class ([A-Za-z]+)\([A-Za-z]+\).*/\1/p' src/everstate/topology/nodes/*.py | paste -s -d '|' -)
modules ! -name __init__.py | sed 's|/[^/]*$||' | sort | uniq -c | sort -rn | count "packages, those of most modules (at most 20)" 3
modules -exec wc -l {} + | grep -v ' total$' | sort -rn | count "modules, those of most lines (at most 400)" 3
modules -exec "$python" -c 'import ast, sys; print(*(f"{f.end_lineno - f.lineno + 1} {path}:{f.lineno} {f.name}" for path in sys.argv[1:] for f in ast.walk(ast.parse(open(path).read())) if "FunctionDef" in type(f).__name__ and f.end_lineno - f.lineno >= 60), sep="\n")' {} + | count "functions over 60 lines"
sed -n '/importlinter.contracts/,/^name/s/^name = //p' pyproject.toml | count "import contracts"
found "isinstance\(.*\b($nodes)\b" | grep -v '^src/everstate/topology/nodes/' | count "isinstance on classes of nodes, outside their package"
found '\*\*given: Any' | count "**given: Any"
found "\.dlq[\"']" | count "literals of .dlq"
