"""What was decided: what changed between two drafts of a document, and what a text says was settled."""
