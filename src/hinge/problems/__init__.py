"""The mathematics: losses, penalties and the objectives made of them. No loops over iterations here."""
