"""`python -m kinprint`, the same as the `kinprint` command."""

from kinprint.cli import main

if __name__ == "__main__":
    main()
