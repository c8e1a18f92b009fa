"""Guards, prints, errstate, writes into arguments."""
