"""What a function does besides its arguments and result, and what is said to the user about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everstate.errors import FingerprintError
from everstate.fingerprints.outside.lookup import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everstate.fingerprints.declarations import Declaration
    from everstate.location import Location

_REPEATED: Final = ", so results could not be repeated"
_SAYING: Final[dict[str, tuple[str, str]]] = {
    "clock": ("reads the clock", "Take the time from the record, or declare it: @es.declare(clock=True)"),
    "random": ("differs each time it is called", "Derive it from the record, or declare it: @es.declare(random=True)"),
    "order": (
        "has a different order in every process",
        "Sort it: sorted(...), .sort(...), or maintain_order=True; or declare it: @es.declare(random=True)",
    ),
    "address": (
        "shows where in memory it is",
        "Give its class a __repr__, or show what is in it; or declare it: @es.declare(random=True)",
    ),
    "memory": (
        "keeps counting from call to call, in whichever process that happens",
        "Keep it per key: apply(fn, stateful=True) with state.set(); or declare it: @es.declare(random=True)",
    ),
    "zone": (
        "depends on the time zone of the machine",
        'Say which time zone: datetime.UTC or ZoneInfo("NAME"); or declare it: @es.declare(environment=["TZ"])',
    ),
    "files": ("reads files", "Read it before the service is built, or declare it: @es.declare(files=[PATH])"),
    "network": ("uses the network", 'Make it a source topic, or declare it: @es.declare(network="what it asks")'),
    "environment": (
        "depends on the machine or the process",
        'Use app.config(), or declare it: @es.declare(environment=["NAME"])',
    ),
    "settings": (
        "uses settings of the process, which the workers do not share",
        'Set it where it is used, or declare it: @es.declare(version="1")',
    ),
    "process": ("starts programs or threads", 'Declare which version it is: @es.declare(version="1")'),
    "code": ("runs code that does not exist yet", 'Declare which version it is: @es.declare(version="1")'),
    UNKNOWN: (
        "is not known to depend on its arguments alone",
        'If it does, say so: @es.declare(pure=["{name}"])',
    ),
}
#: Better words for some, by the name or what it begins with.
_HINTS: Final[dict[str, str]] = {
    "decimal.": 'Use "with decimal.localcontext(prec=6):" or decimal.Context(prec=6) inside the function.',
    "numpy.seterr": 'Use "with numpy.errstate(...):" inside the function.',
    "numpy.set_printoptions": 'Use "with numpy.printoptions(...):" inside the function.',
    "pandas.set_option": 'Use "with pandas.option_context(...):" inside the function.',
    "pandas.options": 'Use "with pandas.option_context(...):" inside the function.',
    "polars.Config": 'Use "with polars.Config(...):" around what needs it, and declare it: @es.declare(version="1")',
    "warnings.": 'Use "with warnings.catch_warnings():" around it.',
    "gzip.": "Set the time that is written into it: mtime=0",
    "random.Random": "Give it a seed that comes from the record.",
    "numpy.random": "Use numpy.random.default_rng(SEED) inside the function, with a seed that comes from the record.",
    "dateutil.parser.parse": "Say what fills the parts that are not given: default=datetime(2000, 1, 1)",
    "dateutil.rrule": "Say when it begins: dtstart=",
    "builtins.hash": "Use hashlib, or zlib.crc32 of the encoded text; or declare it: @es.declare(random=True)",
    "pickle.": 'Use json; or declare it: @es.declare(version="1")',
    "logging.": "Only write to loggers; take times and levels from the record or from app.config().",
    "threading.": 'Leave it out: rows of one key never meet in two threads. Or declare it: @es.declare(version="1")',
    "polars.*.sample": "Give a seed: seed=1; or declare it: @es.declare(random=True)",
    "polars.*.shuffle": "Give a seed: seed=1; or declare it: @es.declare(random=True)",
    "pandas.*.sample": "Give a seed: random_state=1; or declare it: @es.declare(random=True)",
    "pandas.*.query": 'Write the expression as a literal text without "@"; or declare it: @es.declare(version="1")',
    "pandas.*.eval": 'Write the expression as a literal text without "@"; or declare it: @es.declare(version="1")',
}
#: Which of `es.declare`'s words cover which kinds of effects.
_COVERS: Final[dict[str, tuple[str, ...]]] = {
    "clock": ("clock",),
    "random": ("random", "order", "address", "memory"),
    "files": ("files",),
    "network": ("network",),
    "environment": ("environment", "zone"),
    "version": ("process", "code", "settings", UNKNOWN),
}


@dataclass(frozen=True)
class Effect:
    """Something that a function does besides its arguments and result.

    Attributes:
        kind: What it does.
        name: Through which function.
        location: Where the user's code reaches it.
        saying: What to say instead of the words for its kind.
    """

    kind: str
    name: str
    location: Location | None
    saying: str = ""

    def refused(self) -> FingerprintError:
        """The error for it."""
        what, hint = _SAYING[self.kind]
        better = next((text for begin, text in _HINTS.items() if self.name.startswith(begin)), "")
        if better and "@es.declare" not in better:
            better = f"{better} Or declare it: @es.declare({_declared(self.kind)})"
        shown = self.name.replace(".*.", " ... .")
        message = f"{shown} {self.saying or what}{_REPEATED if self.kind != UNKNOWN else ''}"
        return FingerprintError(message, location=self.location, hint=better or hint.format(name=_package(self.name)))


@dataclass(frozen=True)
class Cover:
    """What has been declared on the way to a definition.

    Attributes:
        kinds: The kinds of effects.
        names: The names that were said to be pure.
    """

    kinds: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def with_(self, declaration: Declaration | None) -> Cover:
        """What is covered below a definition that declares something."""
        if declaration is None:
            return self
        kinds = {kind for word in declaration.words for kind in _COVERS[word]}
        return Cover(self.kinds | kinds, self.names | set(declaration.pure))

    def has(self, effect: Effect) -> bool:
        """Whether an effect is declared."""
        return effect.kind in self.kinds or _is_below(effect.name, self.names)


def _is_below(name: str, names: Iterable[str]) -> bool:
    return any(name == above or name.startswith(f"{above}.") for above in names)


def _declared(kind: str) -> str:
    word = next(word for word, kinds in _COVERS.items() if kind in kinds)
    return {
        "clock": "clock=True",
        "random": "random=True",
        "files": "files=[PATH]",
        "network": 'network="what it asks"',
        "environment": 'environment=["NAME"]',
    }.get(word, 'version="1"')


def _package(name: str) -> str:
    """A name as users would declare it: the package or module, without private parts."""
    parts = name.split(".")
    if parts[0].startswith("_"):
        return name
    public = [part for part in parts if not part.startswith("_")]
    return ".".join(public[:2]) if len(public) > 2 else public[0]
