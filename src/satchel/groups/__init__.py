"""Tool groups: which tools, skills and notes a session sees."""
