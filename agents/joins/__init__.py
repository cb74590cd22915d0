"""How results are joined: by a model, in parts of what is too long, or without a model at all."""
