from fairlane.bmv2.cli import *  # noqa: F403
from fairlane.bmv2.cli import main

if __name__ == "__main__":
    main()
