"""``SoleMemory``: which slots of a plan's function hold arrays whose memory nothing else refers to.

An array that the function has just made belongs to its slot alone. Basic indexing, ``reshape`` and
``transpose`` make another slot share it. As soon as another operation may have kept a reference,
the memory counts as shared with others.
"""

from collections.abc import Collection, Iterable

from attrs import define, field

from letir.ast.terms import Bind
from letir.ops.as_numpy.quick_numbers import copies_elements, makes_plain_view


@define(eq=False)
class SoleMemory:
    """The slots that share each piece of memory, for memory to which only slots refer."""

    holders: dict[int, set[int]] = field(factory=dict)  # equal pieces have the same set

    def add_new(self, slot: int) -> None:
        """Note that ``slot`` holds an array that was just made."""
        self.forget((slot,))
        self.holders[slot] = {slot}

    def is_sole(self, slot: int, others: Collection[int]) -> bool:
        """Whether only ``slot`` refers to its memory, and perhaps the slots ``others``."""
        holders = self.holders.get(slot)
        return holders is not None and all(n == slot or n in others for n in holders)

    def record_use(self, bind: Bind, slots: tuple) -> set[int] | None:
        """Note that ``bind`` reads ``slots``; the holders of the memory that its result shares."""
        if makes_plain_view(bind):
            return self.holders.get(slots[0])
        if copies_elements(bind):
            return None
        for slot in slots:
            for holder in tuple(self.holders.get(slot, ())):
                del self.holders[holder]
        return None

    def share(self, slot: int, holders: set[int]) -> None:
        """Note that ``slot`` refers to the memory of ``holders`` too."""
        holders.add(slot)
        self.holders[slot] = holders

    def forget(self, slots: Iterable[int]) -> None:
        """Note that ``slots`` are cleared."""
        for slot in slots:
            holders = self.holders.pop(slot, None)
            if holders is not None:
                holders.discard(slot)
