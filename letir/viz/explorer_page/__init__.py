"""The explorer: a program as one HTML page to search, step through and run.

Read ``explorer.py`` first; ``row_pool.py`` says how programs are written as JSON. The files
``scripts/*.js`` are the script of the page, in the order of ``SCRIPTS`` in ``page_file.py``, and
``page.css`` is its style.
"""
