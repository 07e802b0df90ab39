"""What kinds of documents and clauses there are: a tree as data, of the product or of the firm."""
