"""Which commit changed a case: `irdiff bisect`."""
