"""``source_files``: the parts of the user's files that a program comes from, as JSON."""

import linecache
from collections.abc import Iterable
from typing import Any

from letir.ast.source import Source
from letir.viz.picture import shorten_text
from letir.viz.shown_programs import functions_in_file

_MAX_LINES = 3000  # of all files
_AROUND = 3  # lines around a line that stands in no function
_MAX_LENGTH = 200  # characters of a line


def source_files(sources: Iterable[Source]) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """(files, for each source its file, its first and its last line).

    A file is its name and pieces ``[first line, texts]``. Of a file that can be read, these are the
    functions that contain the lines; else only the lines, if their texts are known.
    """
    sources = list(sources)
    at: dict[tuple[str, bool], int] = {}
    spans: list[list[int]] = []
    lines_by_file: list[dict[int, str]] = []
    for source in sources:
        file = at.setdefault((source.file, source.text is None), len(at))
        if file == len(lines_by_file):
            lines_by_file.append({})
        last = source.line if source.span is None else max(source.span[0], source.line)
        spans.append([file, source.line, last])
        if source.text is not None:  # a file of this name may be a different one
            lines_by_file[file].setdefault(source.line, source.text)
        else:
            for line in _lines_around(source.file, source.line, last):
                lines_by_file[file][line] = linecache.getline(source.file, line).rstrip("\n")
    names: list[str] = [""] * len(lines_by_file)
    for source, (file, _, _) in zip(sources, spans, strict=True):
        names[file] = source.short_file
    room, files = _MAX_LINES, []
    for name, lines in zip(names, lines_by_file, strict=True):
        shown = dict(sorted(lines.items())[: max(room, 0)])
        room -= len(shown)
        files.append({"name": name, "pieces": _consecutive_pieces(shown)})
    return files, spans


def _lines_around(file: str, first: int, last: int) -> range:
    """The lines of the smallest function that contains a line, or a few lines around it."""
    for start, end, _ in functions_in_file(file):
        if start <= first <= end:
            return range(start, max(end, last) + 1)
    return range(max(first - _AROUND, 1), last + _AROUND + 1)


def _consecutive_pieces(lines: dict[int, str]) -> list[list]:
    """Consecutive lines as one piece."""
    pieces: list[list] = []
    for number, text in lines.items():
        if not pieces or pieces[-1][0] + len(pieces[-1][1]) != number:
            pieces.append([number, []])
        pieces[-1][1].append(shorten_text(text, _MAX_LENGTH))
    return pieces
