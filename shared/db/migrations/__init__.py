"""Schema migrations, run in process by `shared.db.migrate`."""
