"""The parts of the embedded PostgreSQL launcher; `langchain_memrag.stores.embedded` is its door."""
