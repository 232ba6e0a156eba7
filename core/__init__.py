"""The LLM inference lab: arithmetic, a small engine, and the two held against each other.

Imports point one way: ``ui -> lab client -> analytic -> catalog -> units`` and, apart from
them, ``lab worker -> engine -> analytic``. Only ``core.engine`` and the lab's worker half
import torch; only ``core.ui`` and ``pages/`` import streamlit and plotly.
"""
