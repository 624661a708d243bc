"""Programs that write what the project keeps: the sample, the recorded directories, the table of config keys."""
