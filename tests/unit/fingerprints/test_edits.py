"""Edits of a program: those that change its meaning are seen, the others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.fingerprints.program import PROGRAM, edited, fingerprints

pytestmark = pytest.mark.slow

CHANGES = {
    "constant in a function": ("service", "amount > 10 and", "amount > 11 and"),
    "comparison operator": ("service", "amount > 10 and", "amount >= 10 and"),
    "logical operator": ("service", "amount > 10 and", "amount > 10 or"),
    "arithmetic operator": ("service", "amount * rate + extra", "amount * rate - extra"),
    "order of operands": ("service", "amount * rate + extra", "amount * extra + rate"),
    "text in a function": ("service", '!= "void":', '!= "null":'),
    "type of a constant": ("service", "amount > 10 and", "amount > 10.0 and"),
    "default": ("service", "rate=2", "rate=3"),
    "default of a parameter by name": ("service", "extra=5", "extra=6"),
    "closure value": ("service", "above(7)", "above(8)"),
    "configuration": ("service", 'app.config("limit", 250)', 'app.config("limit", 251)'),
    "global dict": ("service", '"b": [2, 3]', '"b": [2, 4]'),
    "global set": ("service", 'NAMES = {"x", "y", "z"}', 'NAMES = {"x", "y"}'),
    "helper in another module": ("rules", "* SHARE", "/ SHARE"),
    "constant of a helper": ("rules", "SHARE = 0.25", "SHARE = 0.5"),
    "helper's helper": ("tax", "math.floor", "math.ceil"),
    "helper through three modules": ("deep", "even(4) and RATE", "even(4) and RATE + 1"),
    "constant through three modules": ("deep", "RATE = 0.19", "RATE = 0.2"),
    "functions that call each other": ("deep", "False if n == 0", "False if n == 1"),
    "class attribute": ("tax", "FLAT = 3", "FLAT = 4"),
    "inner function": ("tax", "value is None", "value is not None"),
    "argument of a partial": ("service", "low=1, high=99", "low=2, high=99"),
    "which function a partial calls": ("service", "partial(rules.between,", "partial(rules.fee,"),
    "state of an instance in slots": ("service", "Bonus(4)", "Bonus(5)"),
    "state of a callable object": ("service", "Shifted(3)", "Shifted(4)"),
    "method": ("models", 'row["amount"] >= self.least', 'row["amount"] > self.least'),
    "call of an object": ("models", "+ self.by > 0", "- self.by > 0"),
    "base class's attribute": ("models", "margin = 2", "margin = 3"),
    "base class's method": ("models", "value + self.margin", "value - self.margin"),
    "base class": ("models", "class Cart(Base):", "class Cart(Base, list):"),
    "property": ("models", "RATE + 1", "RATE + 2"),
    "constructor": ("models", "self.value = value", "self.value = value + 1"),
    "class method": ("models", "return cls(factor)", "return cls(factor + 1)"),
    "static method": ("models", "return 1", "return 2"),
    "member of an enum": ("models", "HIGH = 1000", "HIGH = 1001"),
    "default of a dataclass field": ("models", "y: int = 0", "y: int = 1"),
    "annotation of a dataclass": ("models", "x: int", "x: float"),
    "setting of a dataclass": ("models", "@dataclass(frozen=True)", "@dataclass(frozen=True, order=True)"),
    "value of a dataclass instance": ("service", "Point(1, 2)", "Point(1, 3)"),
    "decorator": ("service", '{"total": 0.0}', '{"total": 1.0}'),
    "decorated function": ("service", "* 1.5}", "* 2.5}"),
    "decorator taken away": ("service", "@logged\ndef", "def"),
    "annotation that is dispatched on": ("service", "value: float):", "value: int):"),
    "dispatched function": ("service", "value + 8", "value + 9"),
    "cached function": ("service", "value * 12", "value * 13"),
    "module imported in a function": ("late", "number > 5", "number > 6"),
    "pattern": ("late", "case 0 | None:", "case 1 | None:"),
    "format of a text": ("service", "{amount:.2f}", "{amount:.3f}"),
    "comprehension": ("service", 'if name > "w"', 'if name > "x"'),
    "imported function": ("service", "import price as priced", "import fee as priced"),
    "constant in an expression": ("service", 'col("status") != "void"', 'col("status") != "none"'),
    "operator in an expression": ("service", 'col("amount") * 2.0', 'col("amount") / 2.0'),
    "aggregate": ("service", 'col("total").mean()', 'col("total").max()'),
    "expression around an aggregate": ("service", ".mean() + 1", ".mean() + 2"),
    "grouping": ("service", '.group_by("kind")', '.group_by(kind=col("kind").str.to_uppercase())'),
    "schema type": ("service", '"customer": str, "amount": float', '"customer": str, "amount": int'),
    "nullable column": ("service", '"customer": str, ', '"customer": str | None, '),
    "schema in the middle": ("service", '(scaled, schema={"total": float', '(scaled, schema={"total": float | None'),
    "source topic": ("service", 'app.table("orders"', 'app.table("orders2"'),
    "source key": ("service", 'key="id"', 'key="customer"'),
    "stream instead of a table": ("service", 'app.table("orders"', 'app.stream("orders"'),
    "step taken away": ("service", "    .filter(above(7))\n", ""),
    "order of steps": (
        "service",
        "    .filter(Bonus(4).wins)\n    .filter(Shifted(3))\n",
        "    .filter(Shifted(3))\n    .filter(Bonus(4).wins)\n",
    ),
    "own aggregate": ("service", 'a["n"] + 1}', 'a["n"] + 2}'),
    "first value of an aggregate": ("service", '{"n": 0}', '{"n": 1}'),
    "policy for bad records": ("service", 'es.Service("shop")', 'es.Service("shop", on_error="skip")'),
}
SILENT = {
    "comment": [("service", "# The heart of it.", "# The heart of it, said better.\n    # Twice.")],
    "docstring": [("service", '"""What a row costs."""', '"""What one row costs, fees included."""')],
    "module docstring": [("rules", '"""Rules."""', '"""All the rules.\n\nAnd more.\n"""')],
    "docstring taken away": [("service", '    """What a row costs."""\n', "")],
    "formatting": [
        (
            "service",
            'return {"total": priced(amount) + rules.fee(amount), "kind": f"{row[\'status\']}-{amount:.2f}"}',
            (
                "return {\n        'total': (\n            priced(amount)\n          + rules.fee(amount)\n     ),\n"
                "        'kind': f'{row[\"status\"]}-' f'{amount:.2f}',\n    }"
            ),
        )
    ],
    "lines moved": [("service", "def total(", "\n\n\n\ndef total(")],
    "renamed local": [
        ("service", 'amount: float = row["amount"]', 'worth: float = row["amount"]'),
        ("service", "if amount > 10 and", "if worth > 10 and"),
        ("service", "amount = amount * rate + extra", "worth = worth * rate + extra"),
        (
            "service",
            'priced(amount) + rules.fee(amount), "kind": f"{row[\'status\']}-{amount:.2f}"',
            'priced(worth) + rules.fee(worth), "kind": f"{row[\'status\']}-{worth:.2f}"',
        ),
    ],
    "renamed parameter": [
        ("rules", "def price(amount):\n    return tax.gross(amount)", "def price(a):\n    return tax.gross(a)")
    ],
    "renamed comprehension variable": [
        ("service", '[name for name in sorted(NAMES) if name > "w"]', '[n for n in sorted(NAMES) if n > "w"]')
    ],
    "renamed variable in a pattern": [
        (
            "late",
            "float() as number if number > 5:\n            return number",
            "float() as n if n > 5:\n            return n",
        )
    ],
    "type hints added": [("service", "def kept(row):", "def kept(row: dict[str, object]) -> bool:")],
    "type hint changed": [("service", "amount: float = row", "amount: int = row")],
    "type hint taken away": [("service", "amount: float = row", "amount = row")],
    "number written otherwise": [("models", "HIGH = 1000", "HIGH = 1_000")],
    "text written otherwise": [("service", '!= "void":', "!= 'void':")],
    "parentheses": [("service", "amount * rate + extra", "((amount * rate) + extra)")],
    "renamed function": [
        ("service", "import price as priced", "import cost as priced"),
        ("rules", "def price(", "def cost("),
    ],
    "import written otherwise": [
        ("tax", "import math\n", "from math import floor\n"),
        ("tax", "math.floor(", "floor("),
    ],
    "import of the module": [
        ("service", "from shop.rules import price as priced\n", ""),
        ("service", "priced(amount)", "rules.price(amount)"),
    ],
    "function moved to another module": [
        ("rules", "def fee(amount):\n    return min(amount, tax.Rates.FLAT)\n", "from shop.tax import fee\n"),
        ("tax", "def open_end(row):", "def fee(amount):\n    return min(amount, Rates.FLAT)\n\n\ndef open_end(row):"),
    ],
    "constant moved to another module": [
        ("rules", "SHARE = 0.25", "from shop.late import SHARE"),
        ("late", "def shift(value):", "SHARE = 0.25\n\n\ndef shift(value):"),
    ],
    "order of functions in a file": [
        ("deep", "def base_rate():\n    return even(4) and RATE\n\n\n", ""),
        (
            "deep",
            "    return False if n == 0 else even(n - 1)\n",
            "    return False if n == 0 else even(n - 1)\n\n\ndef base_rate():\n    return even(4) and RATE\n",
        ),
    ],
    "order of methods": [
        ("models", "    @staticmethod\n    def sign():\n        return 1\n\n", ""),
        (
            "models",
            "    def __init__(self, factor):",
            "    @staticmethod\n    def sign():\n        return 1\n\n    def __init__(self, factor):",
        ),
    ],
    "lambda to a function": [
        (
            "service",
            'return lambda row: row["amount"] > limit',
            'def over(row):\n        return row["amount"] > limit\n\n    return over',
        ),
    ],
    "code that is not reached": [
        ("tax", "OTHER = 9", "OTHER = 10"),
        ("rules", "SHARE = 0.25", "SHARE = 0.25\nUNUSED = 1"),
    ],
    "annotations as texts": [("models", '"""Classes."""', '"""Classes."""\nfrom __future__ import annotations\n')],
    "trailing comma": [("service", "> LIMIT, )", "> LIMIT)")],
    "pass": [("deep", "def odd(n):\n", "def odd(n):\n    pass\n")],
    "partitions of the output": [("service", '.to("totals")', '.to("totals", partitions=7)')],
}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return fingerprints(tmp_path_factory.mktemp("before"), PROGRAM)


@pytest.mark.parametrize("edit", CHANGES.values(), ids=CHANGES)
def test_fingerprint_after_a_change_of_meaning_differs(edit, before, tmp_path: Path) -> None:
    assert fingerprints(tmp_path, edited(edit)) != before


@pytest.mark.parametrize("edits", SILENT.values(), ids=SILENT)
def test_fingerprint_after_a_change_of_text_is_the_same(edits, before, tmp_path: Path) -> None:
    assert fingerprints(tmp_path, edited(*edits)) == before


def test_fingerprint_of_the_same_program_is_the_same(before, tmp_path: Path) -> None:
    assert fingerprints(tmp_path, PROGRAM) == before


def test_fingerprint_of_a_renamed_module_is_the_same(before, tmp_path: Path) -> None:
    program = edited(
        ("rules", "from shop import tax\n", "from shop import taxes as tax\n"),
        ("service", "from shop.rules", "from shop.rulebook"),
        ("service", "from shop import rules\n", "from shop import rulebook as rules\n"),
    )
    program["taxes"] = program.pop("tax")
    program["rulebook"] = program.pop("rules")
    assert fingerprints(tmp_path, program) == before


def test_fingerprint_of_other_outputs_is_the_same(before, tmp_path: Path) -> None:
    after = fingerprints(tmp_path, edited(CHANGES["own aggregate"]))
    assert [topic for topic in before if before[topic] != after[topic]] == ["counts"]
