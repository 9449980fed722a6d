"""PostgreSQL with pgvector: the system of record, and by default search index and graph as well."""
