"""Everything that a part of a service reaches: functions, classes and objects, each defined once.

Functions refer to each other in circles, so each is numbered when it is first met, in the order in which the code names
them. The numbers stand for the names: moving or renaming a function changes none of them.
"""

from __future__ import annotations

import random
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from everstate.errors import DefinitionError, FingerprintError
from everstate.fingerprints.code import functions
from everstate.fingerprints.code.canonical import Forms
from everstate.fingerprints.code.holes import with_attributes
from everstate.fingerprints.code.revealing import SETTERS, reveals
from everstate.fingerprints.outside import lookup, process
from everstate.fingerprints.outside.conditions import excused
from everstate.fingerprints.outside.distributions import versions_of, zone_data_version
from everstate.fingerprints.outside.effects import Cover, Effect
from everstate.fingerprints.outside.judging import Judge
from everstate.fingerprints.outside.origins import LIBRARIES
from everstate.fingerprints.outside.outsiders import name_of
from everstate.fingerprints.outside.usage import usage_of_function
from everstate.fingerprints.outside.zones import local_zone
from everstate.fingerprints.tree import Ref, Tree, atom, digest
from everstate.fingerprints.values import readings, values
from everstate.fingerprints.values.readings import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from everstate.fingerprints.code.slots import Surroundings
    from everstate.fingerprints.code.templates import Slot
    from everstate.fingerprints.declarations import Declaration
    from everstate.location import Location


@dataclass(eq=False, slots=True)
class Definition:
    """A function, class or object of the user's.

    Attributes:
        tree: What it is.
        effects: What it does besides its arguments and result.
        uses: The numbers of the definitions that it refers to.
        declaration: What the user said of it.
    """

    tree: Tree = None
    effects: list[Effect] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    declaration: Declaration | None = None


class Reach:
    """Collects what one part reaches.

    Attributes:
        packages: Versions of the distributions reached, by name.
        keywords: Names by which anything in it passes arguments.
        spreads: Something passes arguments whose names cannot be told.
        stored: Names of attributes that anything in it sets; `*` if that may be any.
        takes: It takes plain values that are attributes of classes.
        location: Where in the user's code the walk is.
        forms: Functions in the form that all ways to write them have in common.
    """

    def __init__(self, location: Location | None, *, plain: bool = False) -> None:
        self.packages: dict[str, str] = {}
        self.keywords: set[str] = set()
        self.spreads = False
        self.stored: set[str] = set()
        self.takes = False
        self.location = location
        self.definitions = [Definition()]
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # a number belongs to an object, so its address must not be given to another
        self._current = 0
        self._sorting: frozenset[int] = frozenset()
        self._judge = Judge()
        self._slot: tuple[Surroundings, Slot] | None = None
        self._cover = Cover()  # all that is declared, wherever
        self._lost: list[Effect] = []
        self.forms = Forms(functions.template_of_function, plain=plain)
        self._reads: set[str] = set()
        self._facts: list[tuple[int, str, Callable[[], Tree]]] = []

    def tree(self, thing: Any) -> Tree:
        """The tree of a function or object with everything that it reaches.

        Raises:
            FingerprintError: If something in it cannot be seen, or reads what was not declared.
        """
        try:
            root = self.value(thing)
            if self.forms.looks and not self.forms.plain:
                self.__init__(self.location, plain=True)  # type: ignore[misc]  # all of it, as it is written
                root = self.value(thing)
            told = self._told()
        except RecursionError:
            raise self.refused("this is nested too deeply to be compared", hint="Use a flatter structure.") from None
        except FingerprintError:
            # An effect that led to something that cannot be seen says more.
            for effect in self._lost:
                if not self._cover.has(effect):
                    raise effect.refused() from None
            raise
        except DefinitionError:
            raise
        except Exception as error:
            raise self.refused(
                f"this cannot be inspected: {type(error).__name__}: {error}",
                hint='Pass plain values, or declare which version it is: @es.declare(version="1")',
            ) from error
        self._judge_all()
        tree = [root, [definition.tree for definition in self.definitions[1:]]]
        tree = [*tree, told] if told else tree
        return with_attributes(tree, self.stored) if self.takes else tree

    def value(self, thing: Any) -> Tree:
        """The tree of anything, within this walk."""
        if type(thing) is str:
            self._judge.text(thing, self._current, self.location)
        elif thing is sys.stdout or thing is sys.stderr:
            return ["standard", "output"]  # what is written there is no result
        elif isinstance(getattr(thing, "__self__", None), random.Random):
            self.name(name_of(thing))
            return ["standard", name_of(thing)]  # without the state of its generator
        return values.value(self, thing)

    def define(self, thing: object, build: Callable[[], Tree]) -> Ref:
        """A reference to something that is defined once and may refer to itself."""
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._numbers[id(thing)] = len(self.definitions)
            self._kept.append(thing)
            self.forms.looks |= isinstance(thing, type) and "__del__" in vars(thing)
            definition = Definition()
            self.definitions.append(definition)
            before = (self._current, self._slot)
            self._current, self._slot = number, None
            try:
                definition.tree = build()
            except FingerprintError:
                self._forget(number)
                raise
            finally:
                self._current, self._slot = before
        self.definitions[self._current].uses.append(number)
        return Ref(number)

    def read(self, kinds: frozenset[str], name: str) -> None:
        """Something reads names or texts that otherwise say nothing."""
        if not kinds:
            return
        if "places" in kinds:
            self.definitions[self._current].effects.append(Place("code", name, self.location))
        self._reads |= kinds
        self.spreads |= "signatures" in kinds

    def fact(self, kind: str, build: Callable[[], Tree]) -> None:
        """A name or a text of the definition at hand, which counts if anything reads such."""
        self._facts.append((self._current, kind, build))

    def _told(self) -> list[Tree]:
        """The facts that something reads. To look at one may lead to more code, which may read more."""
        told: list[Tree] = []
        done: set[int] = set()
        while True:
            waiting = [n for n, (_, kind, _build) in enumerate(self._facts) if n not in done and self._is_read(kind)]
            if not waiting:
                return told
            for place in waiting:
                number, kind, build = self._facts[place]
                before, self._current = self._current, number
                told.append([number, kind, build()])
                self._current = before
            done.update(waiting)

    def _is_read(self, kind: str) -> bool:
        # The text of a class has its name and module.
        shown = kind in ("class names", "class modules") and {"formats", "types"} <= self._reads
        return kind in self._reads or shown

    def keep(self, thing: object) -> None:
        """An object of the user's is reached, which outlives what is called on it."""
        self._judge.memory.keep(thing)

    def call(self, name: str) -> None:
        """A method is reached as a value, and may be called by anything."""
        self._judge.memory.called.add(name)

    def declare(self, declaration: Declaration) -> Tree:
        """What the user said of the definition at hand."""
        self.definitions[self._current].declaration = declaration
        self._cover = self._cover.with_(declaration)
        return declaration.meaning()

    def _forget(self, number: int) -> None:
        """What was begun and cannot be seen, with all that was met inside: nothing may refer to it."""
        self._lost += [effect for definition in self.definitions[number:] for effect in definition.effects]
        del self.definitions[number:]
        self._facts = [fact for fact in self._facts if fact[0] < number]
        self._judge.forget(number)
        self._numbers = {thing: known for thing, known in self._numbers.items() if known < number}

    def unordered(self, container: object, parts: Iterable[Any]) -> list[Tree]:
        """The trees of parts that stand in no order, in one that is the same in every process: by what each is alone.

        A part may lead back to its container, which then says no more about it.
        """
        if id(container) in self._sorting:
            return []
        inner = frozenset({*self._sorting, id(container)})
        return [self.value(part) for part in sorted(parts, key=lambda part: self._alone(part, inner))]

    def _alone(self, part: Any, sorting: frozenset[int]) -> str:
        leaf = atom(part)
        if leaf is not None:
            return f"{leaf.kind} {leaf.text}"
        reach = Reach(self.location)
        reach._sorting = sorting
        return digest([reach.value(part), [definition.tree for definition in reach.definitions]])

    @contextmanager
    def at(self, location: Location | None) -> Iterator[None]:
        """While this place of the user's code is walked."""
        before, self.location = self.location, location or self.location
        try:
            yield
        finally:
            self.location = before

    def package(self, name: str) -> None:
        """A distribution is reached, and what it needs in turn."""
        for found, version in versions_of(name):
            if found not in LIBRARIES:
                self.packages[found] = version

    def zone_data(self) -> None:
        """Time zones are reached."""
        self.packages["tzdata"] = zone_data_version()

    def function(self, around: Surroundings) -> None:
        """A function of the user's is walked."""
        self._judge.see(self._current, around)

    @contextmanager
    def of_slot(self, around: Surroundings, slot: Slot) -> Iterator[None]:
        """While what a name of a function stands for is walked."""
        before, self._slot = self._slot, (around, slot)
        try:
            yield
        finally:
            self._slot = before

    def name(self, dotted: str, thing: object = None) -> None:
        """Something outside the user's code is reached by this name."""
        if dotted.startswith("zoneinfo."):
            self.zone_data()
        self.forms.looks |= reveals(dotted)
        self.stored |= {"*"} if dotted in SETTERS else set()
        self.read(readings.of_outsider(dotted), dotted)
        self._judge.names.add(dotted)
        if isinstance(thing, ModuleType):
            self._judge.modules[dotted] = thing
        kind = lookup.kind_of(dotted)
        if kind and not self._is_excused(dotted):
            self.effect(kind, dotted)

    def effect(self, kind: str, name: str, saying: str = "") -> None:
        """The definition at hand does something besides its arguments and result."""
        self.definitions[self._current].effects.append(Effect(kind, name, self.location, saying))

    def _is_excused(self, dotted: str) -> bool:
        """Whether every use of the name at hand is one in which it has no effect."""
        if self._slot is None:
            return False
        around, slot = self._slot
        if dotted == "builtins.hash" and around.call.__name__ == "__hash__":
            return True  # what it gives is used by sets and dicts alone; who asks for it otherwise is refused
        uses = list(usage_of_function(around).of_slot(slot.name, slot.attributes))
        return bool(uses) and all(excused(dotted, use) for use in uses)

    def method(self, name: str, location: Location | None) -> None:
        """An attribute of something that cannot be told."""
        if "places" in readings.of_attribute(name):
            self.definitions[self._current].effects.append(Place("code", name, location))

    def refused(self, message: str, *, hint: str) -> FingerprintError:
        """An error at the place where the walk is."""
        return FingerprintError(message, location=self.location, hint=hint)

    def _judge_all(self) -> None:
        for number, effect in self._judge.effects():
            self.definitions[number].effects.append(effect)
        # What a part is comes first: what it declares covers the settings, too.
        first = self.definitions[:2][-1]
        facts = {"texts": self._judge.formats, "recursive": self._is_recursive()}
        first.effects.extend(process.changed(self._judge.names, self.location, **facts))
        if self._judge.zone:
            self.packages["time zone of the machine"] = local_zone()
        self._check_effects()

    def _is_recursive(self) -> bool:
        """Whether a definition refers to itself, or to one before it."""
        return any(use <= number for number, found in enumerate(self.definitions) for use in found.uses)

    def _check_effects(self) -> None:
        """Refuse what neither the definition itself nor one on the way to it has declared."""
        waiting, seen = [(0, Cover())], set()
        while waiting:
            number, above = waiting.pop()
            definition = self.definitions[number]
            cover = above.with_(definition.declaration)
            if (number, cover) in seen:
                continue
            seen.add((number, cover))
            for effect in definition.effects:
                if not cover.has(effect):
                    raise effect.refused()
            waiting.extend((use, cover) for use in reversed(definition.uses))
