"""Raw cases: bytes in, outcome at both ends. Tables are data; see rows.py."""
