"""vLLM engines: the probe that runs inside, the record it writes, the reader of records.

Everything here but the reader's output types is standard library only, since it is imported
into the engine's process.
"""
