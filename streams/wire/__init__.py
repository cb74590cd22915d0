"""The border: JSON on the wire to values and back, one model per record kind."""
