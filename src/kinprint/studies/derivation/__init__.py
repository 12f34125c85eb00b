"""The derivation report of January 2026: what it measured, and what that is worth."""
