"""Why a packet took its way: each step with the values before and after (docs/why.md).

`packet_tests` and `runs` find the packet and have it explained, `verdicts` says how it ended, `story` puts the steps in words, `text` and `page` show them.
"""
