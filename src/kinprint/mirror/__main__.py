"""`python -m kinprint.mirror FOLDER`: the mirror in a process of its own."""

from kinprint.mirror.command import main

if __name__ == "__main__":
    main()
