"""Files and programs: read safely, written whole, watched."""
