"""Cannot be imported."""
import sys

print("about to fail", file=sys.stderr)
raise RuntimeError("the database is on fire")
