"""Check that links inside the built site lead to files and anchors that exist.

python docs/check_site.py build/site
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Anchors(HTMLParser):
    """The anchors of a page, and the addresses to which it refers."""

    def __init__(self, page: Path):
        super().__init__()
        self.ids: set[str] = set()
        self.targets: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors and addresses of a tag."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.ids.add(value)
            elif value and name in ("href", "src"):
                self.targets.add(value)


def broken_links(site: Path) -> Iterator[str]:
    """Each address inside the site that leads nowhere, with its page."""
    pages = {page.resolve(): Anchors(page) for page in sorted(site.rglob("*.html"))}
    for page, anchors in pages.items():
        for target in sorted(anchors.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            found = pages.get(path)
            missing = parts.fragment and found and unquote(parts.fragment) not in found.ids
            if not path.is_file() or missing:
                yield f"{page.relative_to(site.resolve())}: {target}"


def main() -> None:
    """Print the broken links of the site in the given folder, and fail if there are any."""
    broken = list(broken_links(Path(sys.argv[1])))
    sys.exit("\n".join(["links that lead nowhere:", *broken]) if broken else 0)


if __name__ == "__main__":
    main()
