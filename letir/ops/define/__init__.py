"""Functions that make records. Read ``records`` first, then the other folders of ``ops``."""
