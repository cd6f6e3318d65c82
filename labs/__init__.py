"""Teaching labs and their grader."""
