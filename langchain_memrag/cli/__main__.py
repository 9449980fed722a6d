"""`python -m langchain_memrag.cli`: the same as `memrag`, from any folder name."""

from langchain_memrag.cli import main

if __name__ == "__main__":
    main()
