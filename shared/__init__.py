"""The retrieval core: everything the product knows, without its edges."""
