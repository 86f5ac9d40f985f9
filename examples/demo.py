"""The story in a terminal: totals that follow their orders, through changes, deletes and a SIGKILL.

    make demo

Everything happens in a temporary folder: the topics (the embedded log), the state and the checkpoints.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from everstate.log import open_log

HERE = Path(__file__).resolve().parent
SERVICE = HERE / "customers.py"
EVERSTATE = [sys.executable, "-m", "everstate.cli.main"]
NAMES = ["ada", "bob", "cleo", "dan", "eve", "finn", "gus", "hana"]

console = Console(highlight=False)


class Stage:
    """The folder of this run, and the commands on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service: subprocess.Popen[bytes] | None = None
        self.log = open_log(folder / "log")
        self.environment = {**os.environ, "EVERSTATE_LOG": str(folder / "log"), "EVERSTATE_QUICK_START": "true"}

    def everstate(self, *words: str, show: bool = True) -> str:
        """Run a command and return what it printed."""
        if show:
            console.print(f"  [bold cyan]$ everstate {shlex.join(words)}[/]")
        done = subprocess.run(  # noqa: S603 - our own command
            [*EVERSTATE, *words], env=self.environment, cwd=HERE, capture_output=True, text=True, check=False
        )
        if done.returncode:
            console.print(done.stderr)
            sys.exit(f"the demo failed at: everstate {shlex.join(words)}")
        return done.stdout

    def start(self) -> None:
        """Start the service in the background, in a process group of its own."""
        console.print(f"  [bold cyan]$ everstate run {SERVICE.name} &[/]")
        command = [*EVERSTATE, "run", str(SERVICE)]
        log = (self.folder / "service.txt").open("ab")
        self.service = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True)  # noqa: S603 - our own command

    def kill(self) -> int | None:
        """SIGKILL to the service and everything it has started; returns its process id, or None if it does not run."""
        if self.service is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.service.pid, signal.SIGKILL)
        self.service.wait()
        number, self.service = self.service.pid, None
        return number

    def produce(self, topic: str, records: list[dict[str, object]], *, show: bool = True) -> None:
        """Produce records as `everstate consume --json` would print them."""
        file = self.folder / "records.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        if show:
            console.print(f"  [bold cyan]$ everstate produce {topic} {file.name}[/]   ({len(records)} records)")
        self.everstate("produce", topic, str(file), show=False)

    def latest(self, topic: str) -> dict[str, dict[str, object]]:
        """The table that is on a topic."""
        found = self.log.latest(topic).select("key", "value").iter_rows()
        return {key.decode(): json.loads(value) for key, value in found}

    def written(self, topic: str) -> int:
        """How many records a topic has got."""
        return sum(self.log.end_offsets([topic])[topic].values())

    def tombstones(self, topic: str) -> list[str]:
        """The keys of all tombstones on a topic."""
        parts = [self.log.read(topic, partition, 0) for partition in self.log.end_offsets([topic])[topic]]
        return sorted({row["key"].decode() for part in parts for row in part.to_dicts() if row["value"] is None})


def order(number: int, customer: str, amount: float, status: str = "paid") -> dict[str, object]:
    """An order as a record."""
    return {"key": f"o{number}", "value": {"customer": customer, "amount": amount, "status": status}}


def expected(orders: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    """The totals worked out from the orders in plain Python: what must be on the topic."""
    amounts: dict[str, list[float]] = defaultdict(list)
    for value in orders.values():
        if value["status"] != "void":
            amounts[str(value["customer"])].append(float(str(value["amount"])))
    return {name: {"total": math.fsum(found), "orders": len(found)} for name, found in amounts.items()}


def show(title: str, table: dict[str, dict[str, object]]) -> None:
    """Print a table of totals."""
    view = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 3, 0, 2))
    view.add_column("customer")
    view.add_column("total", justify="right")
    view.add_column("orders", justify="right")
    for name, value in sorted(table.items()):
        view.add_row(name, f"{value['total']:,.2f}", str(value["orders"]))
    console.print(view)


def chapter(title: str, text: str) -> None:
    """Begin a part of the story."""
    console.print()
    console.print(Panel(text, title=f"[bold]{title}[/]", title_align="left", border_style="blue"))


def wait_until(
    stage: Stage, wanted: dict[str, dict[str, object]], seconds: float = 300
) -> dict[str, dict[str, object]]:
    """Wait until the totals on the topic are these."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = stage.latest("customer-totals")
        if found == wanted:
            return found
        time.sleep(0.3)
    log = (stage.folder / "service.txt").read_text(encoding="utf-8")
    sys.exit(f"the totals did not become what they should; the service said:\n{log}")


def first_run(stage: Stage) -> None:
    """A small history and its totals."""
    chapter("1. A history of orders, and a service", "customers.py keeps a total for each customer, in ten lines:")
    console.print("\n".join(f"    {line}" for line in SERVICE.read_text(encoding="utf-8").splitlines()[5:22]))
    console.print()
    stage.everstate("topic", "create", "orders", "--partitions", "3", "--compact")
    history = [order(n, NAMES[n % 4], 10.1 * n) for n in range(1, 13)]
    stage.produce("orders", history)
    stage.everstate("run", SERVICE.name, "--once")
    show("customer-totals", stage.latest("customer-totals"))


def changes(stage: Stage) -> None:
    """Changes, a move and deletes, while the service runs."""
    chapter(
        "2. Orders change; the totals follow",
        "o1 moves from bob to eve, o2 is voided, o3 is deleted (a tombstone). dan's only orders are deleted: "
        "his key gets a tombstone too.",
    )
    stage.start()
    edits: list[dict[str, object]] = [
        order(1, "eve", 99.99),
        order(2, "cleo", 20.2, "void"),
        {"key": "o3", "value": None},
    ]
    edits += [{"key": f"o{n}", "value": None} for n in (7, 11)]
    stage.produce("orders", edits)
    wanted = expected(stage.latest("orders"))
    show("customer-totals", wait_until(stage, wanted))
    console.print(f"  tombstones on the topic: [bold]{', '.join(stage.tombstones('customer-totals'))}[/]")


def crash(stage: Stage) -> None:
    """SIGKILL in the middle, and a restart."""
    chapter(
        "3. SIGKILL in the middle of 60,000 orders",
        "The process, Spark and all workers die at once; then it is started again.",
    )
    chance = random.Random(7)  # noqa: S311 - a demo needs no secrets
    before = stage.written("customer-totals")
    for part in range(6):
        batch = [
            order(chance.randrange(30_000), chance.choice(NAMES), round(chance.gammavariate(2, 50), 2))
            for _ in range(10_000)
        ]
        stage.produce("orders", batch, show=part == 0)
        if part == 2:
            while stage.written("customer-totals") == before:
                time.sleep(0.1)
            console.print(f"  [bold red]$ kill -9 {stage.kill()}[/]   (half of the orders are in)")
    wanted = expected(stage.latest("orders"))
    behind = sum(stage.latest("customer-totals").get(name) != value for name, value in wanted.items())
    console.print(f"  {behind} of {len(wanted)} totals are behind now. Restart:")
    stage.everstate("run", SERVICE.name, "--once")
    found = stage.latest("customer-totals")
    show("customer-totals", found)
    if found != wanted:
        sys.exit("the totals are not what plain Python makes of the orders")
    console.print(
        "  [bold green]Every total equals what plain Python (math.fsum) makes of all orders, to the last digit: "
        "nothing lost, nothing doubled.[/]"
    )


def main() -> None:
    """Tell the story."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="everstate-demo-") as folder:
        stage = Stage(Path(folder))
        try:
            first_run(stage)
            changes(stage)
            crash(stage)
        finally:
            stage.kill()
    console.print(f"\n  {time.monotonic() - began:.0f} seconds. Next: README.md, your first service.\n")


if __name__ == "__main__":
    main()
