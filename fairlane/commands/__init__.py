"""The commands of `fairlane`, a module each (`fairlane.cli.COMMANDS`)."""
