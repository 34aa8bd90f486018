"""What things are: ids, time, errors, and the records that packages exchange. No I/O in here."""
