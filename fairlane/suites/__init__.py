"""Standard test suites: cases as experiment files with expectations, run in virtual time with any sender, with verdicts on one page."""
