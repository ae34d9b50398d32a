"""From a record's fields to the samples of each subject."""
