"""Numbers and times as people read them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    Example:
        >>> counted(1, "key"), counted(1200, "record")
        ('1 key', '1,200 records')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time, no more exact than an estimate can be.

    Example:
        >>> duration(0.2), duration(48), duration(600), duration(9000)
        ('a second', '48 s', '10 min', '2.5 h')
    """
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def lasting(seconds: float) -> str:
    """A duration in the two units that say most.

    Example:
        >>> lasting(3.25), lasting(45), lasting(7500), lasting(200_000)
        ('3.2 s', '45 s', '2 h 5 min', '2 d 7 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    for (name, size), following in zip(units, (*units[1:], None), strict=True):
        if seconds >= size:
            count, rest = divmod(int(seconds), size)
            lesser = "" if following is None or rest < following[1] else f" {rest // following[1]} {following[0]}"
            return f"{count} {name}{lesser}"
    return "0 s"


def an(noun: str) -> str:
    """A noun with its article.

    Example:
        >>> an("filter"), an("aggregate")
        ('a filter', 'an aggregate')
    """
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def listed(names: tuple[str, ...]) -> str:
    """Names in a sentence.

    Example:
        >>> listed(("a",)), listed(("a", "b", "c"))
        ('a', 'a, b and c')
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
