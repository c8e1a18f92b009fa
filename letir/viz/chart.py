"""``Chart``: a picture with axes, which matplotlib can draw too."""

from collections.abc import Callable
from typing import Any

from attrs import field, frozen

from letir.errors import LetirError
from letir.viz.picture import Picture


@frozen(eq=False, repr=False, kw_only=True)
class Chart(Picture):
    """A picture with axes. ``draw`` draws it on the axes of matplotlib."""

    draw: Callable[[Any], None] = field(repr=False)

    def to_matplotlib(self, axes: Any = None) -> Any:
        """Draw the chart with matplotlib, for papers; returns the axes, whose ``figure`` is saved.

        ``axes``: where to draw; without, a new figure that fits the chart. Raises LetirError if
        matplotlib cannot be imported.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise LetirError(
                f"to_matplotlib needs the package matplotlib, which cannot be imported: {error}\n"
                "  install it: pip install 'letir[figures]'"
            ) from None
        if axes is None:
            figure = Figure(figsize=(self.width / 100, self.height / 100), layout="constrained")
            axes = figure.add_subplot()
        self.draw(axes)
        return axes
