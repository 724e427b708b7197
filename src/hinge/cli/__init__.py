"""The command `hinge`: one file per subcommand."""
