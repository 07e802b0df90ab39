"""Conversion: the kind of a file by its content, and one module per format that turns its bytes into text.

Format modules are imported in the worker process only (`worker`), never by the process that ingests.
"""
