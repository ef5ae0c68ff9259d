"""`python -m satchel` is the command line."""

from satchel.cli.main import main

if __name__ == "__main__":
    main()
