"""What happens to an error that ends a run: a note with the let line, and no value is kept."""

import traceback

from letir.ast.error_locations import error_at, source_line
from letir.ast.terms import Bind, Lambda
from letir.ast.text.printer import line_of
from letir.errors import GuardError


def say_where(error: BaseException, fn: Lambda, bind: Bind) -> None:
    """Add a note with the let line and the user's; a failed guard says the latter itself."""
    if isinstance(error, GuardError):
        error_at(error, bind.source, with_excerpt=True)
    at = "" if isinstance(error, GuardError) else source_line(bind.source)
    line, *rest = line_of(fn, bind).split("\n")  # not its bodies: who fails in one says so itself
    error.add_note(f"letir: in {line}{' ... }' if rest else ''}{at}")


def forget_values(error: BaseException, outer: BaseException | None) -> None:
    """Clear the frames that ended with ``error`` and those it came from; not those of ``outer``."""
    chain: list = [error]
    seen = {id(outer), id(None)}  # outer: handled around this call; its frames are not ours
    while chain:
        link = chain.pop()
        if id(link) not in seen:
            seen.add(id(link))
            # an exception that is kept, as in a notebook, would keep every array of its frames
            traceback.clear_frames(link.__traceback__)
            chain += [link.__context__, link.__cause__, *getattr(link, "exceptions", ())]
