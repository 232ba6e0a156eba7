"""What a visitor sees: one palette, one function a picture, and the widgets that pages share.

Only this package and ``pages/`` import Streamlit. A page lays out calls of this package; this
package draws what ``core.analytic`` and ``core.lab`` computed, and computes nothing itself.
"""
