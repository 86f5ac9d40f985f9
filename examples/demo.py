"""The story in a terminal: totals that follow their orders, a SIGKILL, an edit without a reset, and the way back.

    make demo
    make demo-kafka

Everything happens in a temporary folder: the services, the topics (the embedded log), the state and the checkpoints.
With the address of a Kafka cluster as its argument, the topics are there; `make demo-kafka` starts one for it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

from everstate.log import open_log

HERE = Path(__file__).resolve().parent
EVERSTATE = [sys.executable, "-m", "everstate.cli.main"]
NAMES = ["ada", "bob", "cleo", "dan", "eve", "finn"]
TOTALS, VIPS = "customer-totals", "vips"
#: The edit: refunded orders no longer count.
BEFORE, AFTER = 'col("status") != "void"', '~col("status").is_in(["void", "refunded"])'

Rows = dict[str, dict[str, object]]

console = Console(highlight=False)


class Stage:
    """The folder of this run, and the commands on it."""

    def __init__(self, folder: Path, log: str) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.replaced: list[subprocess.Popen[bytes]] = []
        self.log = open_log(log)
        self.environment = {
            **os.environ,
            "EVERSTATE_LOG": log,
            "EVERSTATE_HEARTBEAT": "1",
        }
        for name in ("totals.py", "vips.py"):
            shutil.copy(HERE / name, folder / name)

    def everstate(self, *words: str) -> str:
        """Run a command and return what it printed."""
        console.print(f"  [bold cyan]$ everstate {shlex.join(words)}[/]")
        return self.quietly(*words)

    def quietly(self, *words: str) -> str:
        """The same without a word."""
        done = subprocess.run(  # noqa: S603 - our own command
            [*EVERSTATE, *words], env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            console.print(done.stdout + done.stderr)
            sys.exit(f"the demo failed at: everstate {shlex.join(words)}")
        return done.stdout

    def start(self, file: str) -> None:
        """Start a service in the background, in a process group of its own."""
        console.print(f"  [bold cyan]$ everstate run {file} &[/]")
        with self.said(file).open("ab") as log:
            self.running[file] = subprocess.Popen(  # noqa: S603 - our own command
                [*EVERSTATE, "run", file],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def said(self, file: str) -> Path:
        """Where a service in the background has written what it had to say."""
        return self.folder / f"{file}.txt"

    def replace(self, file: str) -> None:
        """A service that another process is about to replace: it will be told, and end by itself."""
        self.replaced.append(self.running.pop(file))

    def kill(self, file: str) -> int:
        """SIGKILL to a service and everything it has started; returns its process id."""
        return self._kill(self.running.pop(file))

    def _kill(self, process: subprocess.Popen[bytes]) -> int:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return process.pid

    def produce(self, topic: str, records: list[dict[str, object]]) -> None:
        """Produce records as `everstate consume --json` would print them."""
        file = self.folder / "records.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        console.print(f"  [bold cyan]$ everstate produce {topic} {file.name}[/]   ({len(records):,} records)")
        self.quietly("produce", topic, str(file))

    def latest(self, topic: str) -> Rows:
        """The table that is on a topic."""
        if not self.log.has_topic(topic):
            return {}
        found = self.log.latest(topic).select("key", "value").iter_rows()
        return {key.decode(): json.loads(value) for key, value in found}

    def ends(self, topic: str) -> dict[int, int]:
        """Where a topic ends now, by partition."""
        return self.log.end_offsets([topic])[topic]

    def since(self, topic: str, ends: dict[int, int]) -> Rows:
        """The records that a topic has got since then; None for a tombstone."""
        frames = [self.log.read(topic, partition, end) for partition, end in ends.items()]
        rows = [row for frame in frames for row in frame.select("key", "value").iter_rows()]
        return {key.decode(): None if value is None else json.loads(value) for key, value in sorted(rows)}

    def close(self) -> None:
        """Leave nothing behind."""
        for process in (*self.running.values(), *self.replaced):
            self._kill(process)
        self.log.close()


def order(number: int, customer: str, amount: float, status: str = "paid") -> dict[str, object]:
    """An order as a record."""
    return {"key": f"o{number}", "value": {"customer": customer, "amount": amount, "status": status}}


def expected(orders: Rows, *left_out: str) -> Rows:
    """The totals worked out from the orders in plain Python: what must be on the topic."""
    amounts: dict[str, list[float]] = defaultdict(list)
    for value in orders.values():
        if value["status"] not in left_out:
            amounts[str(value["customer"])].append(float(str(value["amount"])))
    return {name: {"total": math.fsum(found), "orders": len(found)} for name, found in amounts.items()}


def show(title: str, table: Rows) -> None:
    """Print a table of totals."""
    view = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 3, 0, 2))
    view.add_column("customer")
    view.add_column("total", justify="right")
    view.add_column("orders", justify="right")
    for name, value in sorted(table.items()):
        if value is None:
            view.add_row(name, "[red]tombstone[/]", "")
        else:
            view.add_row(name, f"{value['total']:,.2f}", str(value.get("orders", "")))
    console.print(view)


def chapter(title: str, text: str) -> None:
    """Begin a part of the story."""
    console.print()
    console.print(Panel(text, title=f"[bold]{title}[/]", title_align="left", border_style="blue"))


def code(text: str) -> None:
    """Show Python."""
    console.print(Syntax(text, "python", background_color="default", padding=(0, 2), word_wrap=True))


def wait_until(stage: Stage, topic: str, wanted: Rows, seconds: float = 300) -> Rows:
    """Wait until the table on a topic is this."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = stage.latest(topic)
        if found == wanted:
            return found
        time.sleep(0.1)
    log = "\n".join(stage.said(file).read_text(encoding="utf-8") for file in stage.running)
    sys.exit(f"{topic} did not become what it should; the services said:\n{log}")


def vips(totals: Rows) -> Rows:
    """What the downstream service makes of the totals."""
    return {name: {"total": row["total"]} for name, row in totals.items() if float(str(row["total"])) >= 1000}


def begin(stage: Stage) -> None:
    """A small history and its totals."""
    chapter("1. A history of orders, and a service", "totals.py keeps a total for each customer.")
    code((stage.folder / "totals.py").read_text(encoding="utf-8").partition("\n\n")[2])
    for topic in ("orders", TOTALS):
        stage.everstate("topic", "create", topic, "--partitions", "3", "--compact")
    history = [order(n, NAMES[n % 4], 40.1 * n, "refunded" if n % 12 == 5 else "paid") for n in range(1, 25)]
    stage.start("totals.py")
    stage.produce("orders", [*history, order(25, "gus", 1500.5, "refunded")])
    show(TOTALS, wait_until(stage, TOTALS, expected(stage.latest("orders"), "void")))


def change(stage: Stage) -> None:
    """Changes, a move and deletes."""
    chapter(
        "2. Orders change; the totals follow",
        "o1 moves from bob to eve, o2 is voided, and all of dan's orders are deleted: his key gets a tombstone.",
    )
    before = stage.ends(TOTALS)
    edits = [order(1, "eve", 99.99), order(2, "cleo", 20.2, "void")]
    stage.produce("orders", [*edits, *({"key": f"o{n}", "value": None} for n in range(3, 25, 4))])
    wait_until(stage, TOTALS, expected(stage.latest("orders"), "void"))
    show(f"written to {TOTALS}", stage.since(TOTALS, before))


def crash(stage: Stage) -> None:
    """SIGKILL in the middle, a restart, and a service downstream."""
    chapter(
        "3. SIGKILL in the middle of 30,000 orders",
        "Process, Spark and all workers die at once. Then: start it again, and with it vips.py, which reads totals.",
    )
    chance = random.Random(7)  # noqa: S311 - a demo needs no secrets
    for part in range(2):
        batch = [
            order(chance.randrange(100, 9_000), chance.choice(NAMES), round(chance.gammavariate(2, 50), 2))
            for _ in range(15_000)
        ]
        before = stage.ends(TOTALS)
        stage.produce("orders", batch)
        if part == 0:
            while stage.ends(TOTALS) == before:
                time.sleep(0.05)
            console.print(f"  [bold red]$ kill -9 {stage.kill('totals.py')}[/]")
            stage.start("totals.py")
            stage.start("vips.py")
    found = wait_until(stage, TOTALS, expected(stage.latest("orders"), "void"))
    show(TOTALS, found)
    console.print(
        "  [bold green]Every total equals what plain Python (math.fsum) makes of all orders, to the last digit: "
        "nothing lost, nothing doubled.[/]"
    )
    show(VIPS, wait_until(stage, VIPS, vips(found)))


def edit(stage: Stage) -> None:
    """An edit, its plan, and its deployment."""
    chapter("4. An edit: refunded orders no longer count", "What would that do? The plan says so, down to the keys.")
    file = stage.folder / "totals.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(BEFORE, AFTER), encoding="utf-8")
    code(f"- {BEFORE}\n+ {AFTER}")
    console.print(stage.everstate("plan", "totals.py", "--preview", "--quiet"), markup=False)
    chapter("5. Deploy it", "No reset: the new version takes over, and writes only what differs.")
    before, downstream = stage.ends(TOTALS), stage.running["vips.py"].pid
    stage.replace("totals.py")
    stage.start("totals.py")
    found = wait_until(stage, TOTALS, expected(stage.latest("orders"), "void", "refunded"))
    show(f"written to {TOTALS}", stage.since(TOTALS, before))
    show(VIPS, wait_until(stage, VIPS, vips(found)))
    console.print(f"  vips.py (process {downstream}) was not touched: it read a change and a tombstone, and is right.")


def cosmetics(stage: Stage) -> None:
    """An edit without meaning, and the way back."""
    chapter("6. Another edit: a comment, other names, another layout", "The plan sees that it means the same.")
    file = stage.folder / "totals.py"
    text = file.read_text(encoding="utf-8").replace("orders = app", "# Every order that was ever placed.\nplaced = app")
    file.write_text(text.replace("orders.filter", "placed.filter"), encoding="utf-8")
    console.print(stage.everstate("plan", "totals.py"), markup=False)
    chapter(
        "7. Back to the version before",
        "Its state was kept, so nothing is replayed; again only differences are written.",
    )
    before = stage.ends(TOTALS)
    stage.replace("totals.py")
    stage.everstate("rollback", "totals.py")
    found = wait_until(stage, TOTALS, expected(stage.latest("orders"), "void"))
    show(f"written to {TOTALS}", stage.since(TOTALS, before))
    show(VIPS, wait_until(stage, VIPS, vips(found)))


def main() -> None:
    """Tell the story."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="everstate-demo-") as folder:
        stage = Stage(Path(folder), sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "log"))
        try:
            for part in (begin, change, crash, edit, cosmetics):
                part(stage)
        finally:
            stage.close()
    console.print(f"\n  {time.monotonic() - began:.0f} seconds. Next: README.md, your first service.\n")


if __name__ == "__main__":
    main()
