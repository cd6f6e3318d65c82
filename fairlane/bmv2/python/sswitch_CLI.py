from fairlane.bmv2.switch_cli import *  # noqa: F403
from fairlane.bmv2.switch_cli import main

if __name__ == "__main__":
    main()
