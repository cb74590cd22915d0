"""The main job on real input by one command: everything it needs is started here, and ends here."""
