"""PostgreSQL: tables, engine, migrations."""
