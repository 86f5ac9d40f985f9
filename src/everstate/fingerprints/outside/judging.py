"""Effects that only the whole of what a part reaches shows: a class here, the name of its method there.

`datetime` is harmless, and so is a method that is called `now`; where a function reaches both, the one may be taken of
the other. The same goes for methods of what packages return, for attributes by names that are values, and for texts
that some packages take for the time of day.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.literals import spelled
from everstate.fingerprints.code.slots import MISSING
from everstate.fingerprints.code.sources import imports_of
from everstate.fingerprints.outside import lookup, order, origins, process, shown, zones
from everstate.fingerprints.outside.conditions import excused
from everstate.fingerprints.outside.effects import Effect
from everstate.fingerprints.outside.lookup import UNKNOWN
from everstate.fingerprints.outside.meanings import Meanings
from everstate.fingerprints.outside.memory import Memory
from everstate.fingerprints.outside.outsiders import name_of, package_name
from everstate.fingerprints.outside.usage import MOMENTS, Usage, Use, meaningful, usage_of
from everstate.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everstate.fingerprints.code.slots import Surroundings
    from everstate.fingerprints.code.sources import FunctionNode

#: Packages that take "now" and "today" for the time of day.
_KNOW_MOMENTS: Final = frozenset({"numpy", "pandas"})
#: What takes attributes by names that are values.
_REFLECTIVE: Final = frozenset(
    {"operator.attrgetter", "operator.methodcaller", "inspect.getattr_static", "inspect.getmembers"}
)
_PLAIN: Final = (str, bytes, int, float, tuple)
#: What Path objects have, and PurePath objects do not.
_PATHS: Final = ("pathlib.Path", "pathlib.PosixPath", "pathlib.WindowsPath")


@dataclass(frozen=True, eq=False)
class Sighting:
    """A function that was walked.

    Attributes:
        number: Of its definition.
        node: Its syntax.
        meanings: Its names.
    """

    number: int
    node: FunctionNode
    meanings: Meanings

    @property
    def usage(self) -> Usage:
        """What it reads."""
        return self.meanings.usage

    def at(self, line: int) -> Location:
        """A place in it."""
        return Location(self.meanings.around.file, line)


@dataclass(eq=False)
class Judge:
    """Collects what a part reaches, and finds the effects in it.

    Attributes:
        names: Everything outside the user's code that is reached, by name.
        modules: Modules that are reached as values.
        owned: Attributes that classes of the user's define.
        texts: Texts among the values that are reached which mean something as the name of an attribute.
        moments: Texts among the values that some packages take for the time of day: definition and place.
        found: Effects of plain values.
        zone: Results may depend on the time zone of the machine.
        memory: What outlives the calls of functions.
    """

    names: set[str] = field(default_factory=set)
    modules: dict[str, ModuleType] = field(default_factory=dict)
    owned: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    moments: list[tuple[int, Location | None]] = field(default_factory=list)
    found: list[tuple[int, Effect]] = field(default_factory=list)
    zone: bool = False
    memory: Memory = field(default_factory=Memory)
    _sightings: list[Sighting] = field(default_factory=list)

    def see(self, number: int, around: Surroundings) -> None:
        """A function is walked."""
        node = spelled(around)
        if node is not None:
            usage = usage_of(node)
            self._sightings.append(Sighting(number, node, Meanings(around, usage)))
            self.owned |= {*usage.stored, around.call.__name__}
            for use in usage.uses:
                self._plain(number, self._sightings[-1], use)

    def _plain(self, number: int, sighting: Sighting, use: Use) -> None:
        """A plain value that the function reads: its tree has the value alone, and not where it is from."""
        thing, place, above = sighting.meanings.named(use.root or ""), 0, ""
        if type(thing) is str:
            self.text(thing, number, sighting.at(use.line))
        while place < len(use.attributes) and isinstance(thing, ModuleType):
            above = thing.__name__ if origins.of_loaded(thing).kind != "user" else ""
            thing, place = getattr(thing, use.attributes[place], MISSING), place + 1
        if place:
            name = f"{above}.{use.attributes[place - 1]}" if above else ""
        else:
            name = ".".join(part for part in imports_of(sighting.meanings.around.file).get(use.root or "", ()) if part)
        if above and isinstance(thing, FunctionType) and process.is_users(thing.__code__):
            self.found.append((number, Effect("settings", name, sighting.at(use.line), process.PATCHED)))
        if name and isinstance(thing, _PLAIN):
            kind = lookup.kind_of(name)
            if kind not in ("", UNKNOWN):
                self.found.append((number, Effect(kind, name, sighting.at(use.line))))

    def forget(self, number: int) -> None:
        """What was begun and cannot be seen, from this definition on."""
        self._sightings = [sighting for sighting in self._sightings if sighting.number < number]
        self.moments = [moment for moment in self.moments if moment[0] < number]
        self.found = [found for found in self.found if found[0] < number]

    def text(self, value: str, number: int, location: Location | None) -> None:
        """A text is reached as a value."""
        self.texts.update(meaningful(value))
        if value.strip().lower() in MOMENTS:
            self.moments.append((number, location))

    def effects(self) -> Iterator[tuple[int, Effect]]:
        """What was found, with the number of the definition that has it."""
        yield from self.found
        tops = self._tops()
        added = process.extensions(tops)
        running = self.memory.running((seen.node, seen.meanings) for seen in self._sightings)
        sets = frozenset(name for sighting in self._sightings for name in order.attributes(sighting.meanings))
        for seen in self._sightings:
            sighting = replace(seen, meanings=replace(seen.meanings, sets=sets)) if sets else seen
            for effect in self._of(sighting, tops):
                yield sighting.number, effect
            for use in sighting.usage.uses if added else ():
                for name in added.keys() & set(use.attributes):
                    yield sighting.number, Effect("settings", added[name], sighting.at(use.line), process.PATCHED)
            for line, name in self.memory.kept(sighting.node, sighting.meanings, running):
                yield sighting.number, Effect("memory", name, sighting.at(line))
        if tops & _KNOW_MOMENTS:
            for number, location in self.moments:
                yield number, _moment(location)

    @property
    def formats(self) -> bool:
        """Whether any function makes texts of values."""
        return any(sighting.usage.formats for sighting in self._sightings)

    def _tops(self) -> set[str]:
        tops = {name.partition(".")[0] for name in self.names}
        return tops if any(name.startswith(_PATHS) for name in self.names) else tops - {"pathlib"}

    def _of(self, sighting: Sighting, tops: set[str]) -> Iterator[Effect]:
        usage = sighting.usage
        for use in usage.uses:
            for attribute, at in self._untold(sighting, use):
                yield from self._taken(sighting, attribute, at, tops)
        if self.names & _REFLECTIVE or usage.dynamic:
            for text in {*usage.texts, *self.texts}:
                line = usage.texts.get(text, sighting.node.lineno)
                yield from self._taken(sighting, text, Use(None, (text,), line), tops)
        for use in usage.dynamic:
            yield from _dynamic(sighting, use)
        if tops & _KNOW_MOMENTS:
            yield from (_moment(sighting.at(line)) for line in usage.moments.values())
        for line, what in order.visible(sighting.node, sighting.meanings):
            yield Effect("order", what, sighting.at(line))
        for line, what in shown.addresses(sighting.node, sighting.meanings):
            yield Effect("address", what, sighting.at(line))

    def _untold(self, sighting: Sighting, use: Use) -> Iterable[tuple[str, Use]]:
        """The attributes that are taken of something that is not known; only the last one is called."""
        if not use.attributes:
            return
        first = _first_untold(sighting.meanings, use, self.owned)
        for place, attribute in enumerate(use.attributes):
            if place >= first:
                last = place == len(use.attributes) - 1
                yield attribute, use if last else Use(use.root, use.attributes[: place + 1], use.line)

    def _taken(self, sighting: Sighting, attribute: str, use: Use, tops: set[str]) -> Iterator[Effect]:
        location = sighting.at(use.line)
        for name, kind in lookup.effects_below(attribute):
            if self._is_open(name) and not excused(name, use):
                yield Effect(kind, name, location)
        methods = [(module, kind) for module, kind in lookup.methods_of(attribute) if module in tops]
        if not any(excused(f"{module}.*.{attribute}", use) for module, _ in methods):
            for module, kind in methods:
                yield Effect(kind, f"{module}.*.{attribute}", location)
        for above, loaded in self.modules.items():
            kind = lookup.kind_of(f"{above}.{attribute}")
            if kind and kind != UNKNOWN and hasattr(loaded, attribute):
                yield Effect(kind, f"{above}.{attribute}", location)
        if attribute == "__hash__":
            yield Effect("random", "builtins.hash", location)
        found = zones.judged(sighting.meanings, attribute, use)
        self.zone |= found == zones.PERHAPS
        if found == zones.SURELY:
            yield Effect("zone", f"{attribute}()", location)

    def _is_open(self, name: str) -> bool:
        """Whether something is reached of which this may be taken."""
        above = name.rpartition(".")[0]
        while above:
            if above in self.names:
                return True
            above = above.rpartition(".")[0]
        return False


def _first_untold(meanings: Meanings, use: Use, owned: set[str]) -> int:
    """The place of the first attribute that is not taken of something known."""
    if use.root is None or use.root in meanings.usage.bound:
        made = meanings.called(use.base)
        if isinstance(made, type) and origins.of_object(made).kind == "user":
            return int(_is_defined(made, use.attributes[0]))
        return int(use.root in order.OWNERS and use.attributes[0] in owned)
    thing, place = meanings.named(use.root), 0
    while place < len(use.attributes) and isinstance(thing, ModuleType):
        thing, place = getattr(thing, use.attributes[place], MISSING), place + 1
    if thing is MISSING or place == len(use.attributes):
        return len(use.attributes)
    kind = thing if isinstance(thing, type) else type(thing)
    if origins.of_object(kind).kind != "user":
        return place + isinstance(thing, type)
    held = use.attributes[place] in getattr(thing, "__dict__", {}) and not isinstance(thing, type)
    return place + (held or _is_defined(kind, use.attributes[place]))


def _is_defined(kind: type, name: str) -> bool:
    """Whether a class or a base of it that is the user's has an attribute of its own by this name."""
    users = [base for base in kind.__mro__ if origins.of_object(base).kind == "user"]
    return any(name in vars(base) or name in vars(base).get("__annotations__", {}) for base in users)


def _dynamic(sighting: Sighting, use: Use) -> Iterator[Effect]:
    """An attribute of a module or class outside the user's code that cannot be told."""
    if use.root is None or sighting.usage.bound & {use.root}:
        return
    node: ast.expr = ast.Name(use.root, ast.Load())
    for attribute in use.attributes:
        node = ast.Attribute(node, attribute, ast.Load())
    thing: Any = sighting.meanings.value(node)
    if isinstance(thing, ModuleType):
        foreign = origins.of_loaded(thing).kind != "user"
        names = [thing.__name__]
    else:
        foreign = isinstance(thing, type) and origins.of_object(thing).kind != "user"
        names = [name_of(thing), package_name(thing)] if foreign else []
    if foreign and any(lookup.has_effects(name) for name in names):
        yield Effect("code", names[-1], sighting.at(use.line), "is asked for an attribute that is not known beforehand")


def _moment(location: Location | None) -> Effect:
    return Effect("clock", 'the text "now" or "today"', location, "is the time of day to pandas and NumPy")
