"""Write ``letir/__init__.pyi``, the public names for editors and type checkers, from the table in
``letir/__init__.py``.

python docs/make_stub.py
"""

from pathlib import Path

import letir

PAGE = Path(letir.__file__).with_suffix(".pyi")
HEAD = """\
# Written by docs/make_stub.py from the table in __init__.py, which loads names on first use.
"""


def stub() -> str:
    """The stub: each name imported from its module, by theme."""
    parts = [HEAD]
    parts += [f"from letir import {name} as {name}" for name in sorted(letir._NAMESPACES)]
    for theme, modules in letir._PUBLIC.items():
        parts += ["", f"# {theme.lower()}"]
        for module, names in sorted(modules.items()):
            parts += [f"from letir.{module} import {name} as {name}" for name in sorted(names)]
    names = "".join(f'    "{name}",\n' for name in letir.__all__)
    return "\n".join([*parts, "", "__version__: str", f"__all__ = [\n{names}]\n"])


if __name__ == "__main__":
    PAGE.write_text(stub(), encoding="utf-8")
