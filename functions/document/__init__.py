"""GET /documents/{document_id} and its download."""
