"""What a run of the tests has gone through: counted where tests run, printed by the process that reports."""

from __future__ import annotations

from collections import Counter

from everstate.log.crash import CRASH_POINTS

#: Random histories that agreed with their oracle, by family of operations.
PLAYED: Counter[str] = Counter()
#: How often a process was killed at a crash point.
KILLED: Counter[str] = Counter()
#: What became of edits of random programs.
PAIRED: Counter[str] = Counter()
#: What became of logs whose files were damaged.
DAMAGED: Counter[str] = Counter()
#: Refactorings of random programs that were no change, by kind.
REWRITTEN: Counter[str] = Counter()
#: Deployments that were played in one process, by what disturbed them.
SIMULATED: Counter[str] = Counter()


def taken() -> dict[str, dict[str, int]]:
    """The figures of this process, as plain values."""
    return {
        "played": dict(PLAYED),
        "killed": dict(KILLED),
        "paired": dict(PAIRED),
        "rewritten": dict(REWRITTEN),
        "damaged": dict(DAMAGED),
        "simulated": dict(SIMULATED),
    }


def add(figures: dict[str, dict[str, int]]) -> None:
    """Add the figures of another process."""
    PLAYED.update(figures.get("played", {}))
    KILLED.update(figures.get("killed", {}))
    PAIRED.update(figures.get("paired", {}))
    REWRITTEN.update(figures.get("rewritten", {}))
    DAMAGED.update(figures.get("damaged", {}))
    SIMULATED.update(figures.get("simulated", {}))


def lines() -> list[str]:
    """The figures for people."""
    found = []
    if PLAYED:
        families = ", ".join(f"{family} {count:,}" for family, count in sorted(PLAYED.items()))
        found.append(f"histories that agree with their oracle: {families}")
    if KILLED:
        found.append(f"killed at {len(KILLED)} of {len(CRASH_POINTS)} crash points: {', '.join(sorted(KILLED))}")
    if PAIRED:
        outcomes = ", ".join(f"{outcome} {count:,}" for outcome, count in sorted(PAIRED.items()))
        found.append(f"edits of random programs: {outcomes}")
    if REWRITTEN:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(REWRITTEN.items()))
        found.append(f"refactorings of random programs that are no change: {kinds}")
    if DAMAGED:
        outcomes = ", ".join(f"{outcome} {count:,}" for outcome, count in sorted(DAMAGED.items()))
        found.append(f"logs with damaged files: {outcomes}")
    if SIMULATED:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(SIMULATED.items()))
        found.append(f"simulated deployments that came to the right end: {kinds}")
    return found
