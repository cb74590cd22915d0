"""The attacker: breaks everything around running workers, and verifies that the promise held."""
