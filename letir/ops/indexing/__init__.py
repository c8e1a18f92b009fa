"""Operations by index: reading and writing parts of arrays, taking, sorting and searching."""
