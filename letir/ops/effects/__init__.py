"""Operations with effects: guards, prints, error states, writes into arguments."""
