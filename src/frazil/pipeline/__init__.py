"""Spark over a Frazil catalog. Nothing outside this package imports PySpark, and this package only when it is used."""

from frazil.pipeline.java import PipelineError
from frazil.pipeline.spark import session

__all__ = ["PipelineError", "session"]
