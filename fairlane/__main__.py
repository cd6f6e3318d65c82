"""`python -m fairlane`."""

from fairlane.cli import main

main()
