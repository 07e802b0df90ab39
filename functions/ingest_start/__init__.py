"""What a bucket tells of its objects: one execution for each that is to be taken in."""
