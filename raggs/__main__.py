"""``python -m raggs`` is ``raggs``."""

from raggs.cli import main

if __name__ == "__main__":
    main()
